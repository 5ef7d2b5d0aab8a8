"use strict";
// What the charts of figures and the pictures of lessons share: elements, short numbers, ticks of
// axes, and scales.
const Draw = (() => {
  const SVG = "http://www.w3.org/2000/svg"; // a name, not an address: nothing is fetched

  const make = (name, attributes, parent, text) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  };
  const element = (name, attributes, parent, text) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  };
  const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
  const power = (e) => `10${[...String(e)].map((c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] || "⁻").join("")}`;
  const short = (value) => String(Number(value.toPrecision(4))).replace("-", "−");

  const ticksOf = (low, high, log) => {
    const ticks = [];
    if (log) {
      const [a, b] = [Math.log10(low), Math.log10(high)], step = Math.ceil((b - a) / 6);
      if (b - a < 2) {
        for (let e = Math.floor(a); e <= b; e++) {
          for (const m of b - a < 0.7 ? [1, 1.5, 2, 3, 4, 5, 6, 8] : [1, 2, 5]) if (m * 10 ** e >= low && m * 10 ** e <= high) ticks.push(m * 10 ** e);
        }
        return ticks.map((value) => [value, short(value)]);
      }
      for (let e = Math.ceil(a - 1e-9); e <= b + 1e-9; e += step) ticks.push([10 ** e, power(e)]);
      return ticks;
    }
    const rough = (high - low) / 5, unit = 10 ** Math.floor(Math.log10(rough));
    const step = unit * [1, 2, 5, 10].find((m) => m * unit >= rough * 0.999);
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) ticks.push([i * step, short(i * step)]);
    return ticks;
  };
  // Maps values to pixels, and back.
  const scale = ([low, high], log, from, to) => {
    const [f, g] = log ? [Math.log10, (v) => 10 ** v] : [(v) => v, (v) => v];
    const [a, b] = [f(low), f(high)];
    return [(v) => from + (to - from) * (f(log ? Math.max(v, 1e-30) : v) - a) / (b - a),
      (v) => g(a + (b - a) * (v - from) / (to - from))];
  };
  return { make, element, clamp, short, ticksOf, scale };
})();
