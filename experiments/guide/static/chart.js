"use strict";
// Charts of the curves in the page: drawn when first opened, with values under the pointer or, by
// the arrow keys, under the keyboard, and with either scale on either axis.
(() => {
  const SVG = "http://www.w3.org/2000/svg"; // a name, not an address: nothing is fetched
  const HEIGHT = 260, RIGHT = 12, TOP = 8, BOTTOM = 24;
  // Room for numbers, or for as much of the words as a third of the chart holds.
  const LETTER = 7, NUMBERS = 62;

  const element = (name, attributes, parent) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    parent.append(made);
    return made;
  };
  const themed = (colour) => (colour === "#000000" ? "var(--pst-color-text-base)" : colour);
  const shown = (value) => {
    if (value === 0) return "0";
    const size = Math.abs(value);
    return size >= 1e5 || size < 1e-3
      ? value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e")
      : String(Number(value.toPrecision(4)));
  };

  // A scale maps values to pixels and knows its ticks.
  const scale = (range, log, names, from, to) => {
    const through = log ? Math.log10 : (value) => value;
    const [low, high] = range.map(through);
    const place = (value) => from + ((through(value) - low) / (high - low || 1)) * (to - from);
    let ticks;
    if (names.length) ticks = names;
    else if (log) {
      const [a, b] = [Math.min(low, high), Math.max(low, high)];
      const step = Math.max(1, Math.ceil((b - a) / 6));
      ticks = [];
      for (let e = Math.ceil(a - 1e-9); e <= b + 1e-9; e += step) ticks.push([10 ** e, shown(10 ** e)]);
      if (b - a < 2.5) {
        ticks = [];
        for (let e = Math.floor(a); e <= b; e++) {
          for (const m of b - a < 0.7 ? [1, 1.5, 2, 3, 4, 5, 6, 8] : [1, 2, 5]) {
            const value = m * 10 ** e, at = Math.log10(value);
            if (at >= a - 1e-9 && at <= b + 1e-9) ticks.push([value, shown(value)]);
          }
        }
      }
    } else {
      const [a, b] = [Math.min(low, high), Math.max(low, high)];
      const rough = (b - a) / 5 || 1, unit = 10 ** Math.floor(Math.log10(rough));
      const step = unit * [1, 2, 5, 10].find((m) => m * unit >= rough);
      ticks = [];
      for (let i = Math.ceil(a / step - 1e-9); i * step <= b + 1e-9 * step; i++) {
        ticks.push([i * step, shown(i * step)]);
      }
    }
    return { place, ticks };
  };

  class Chart {
    constructor(panel, holder, names, readout, id) {
      Object.assign(this, { panel, holder, names, readout, id });
      this.log = { x: panel.x_log, y: panel.y_log };
      this.at = null;
      const values = panel.curves.flatMap((curve) => curve.points);
      const buttons = document.createElement("div");
      buttons.className = "scales";
      for (const [axis, index] of [["x", 0], ["y", 1]]) {
        const positive = values.every((point) => point[index] > 0);
        if (!positive || panel[`${axis}_names`].length) continue;
        const button = document.createElement("button");
        button.type = "button";
        const label = () => {
          button.textContent = `${axis}: ${this.log[axis] ? "log" : "linear"}`;
          button.setAttribute("aria-label", `${axis} axis is ${this.log[axis] ? "logarithmic" : "linear"}, switch`);
        };
        button.addEventListener("click", () => {
          this.log[axis] = !this.log[axis];
          label();
          this.draw();
        });
        label();
        buttons.append(button);
      }
      this.svg = document.createElementNS(SVG, "svg");
      this.svg.setAttribute("tabindex", "0");
      this.svg.setAttribute("role", "img");
      this.svg.setAttribute("aria-label", `${panel.title} ${panel.y_label} against ${panel.x_label}. Arrow keys move through the points.`);
      holder.append(buttons, this.svg);
      this.svg.addEventListener("pointermove", (event) => this.nearest(event));
      this.svg.addEventListener("pointerdown", (event) => this.nearest(event));
      this.svg.addEventListener("keydown", (event) => this.step(event));
      this.draw();
      new ResizeObserver(() => requestAnimationFrame(() => {
        if (holder.clientWidth !== this.width) this.draw();
      })).observe(holder);
    }

    // Limits of the figure where its scale is kept, else of the data.
    range(axis, index) {
      const { panel } = this;
      if (this.log[axis] === panel[`${axis}_log`]) return panel[`${axis}_range`];
      const values = panel.curves.flatMap((curve) => curve.points.map((point) => point[index]));
      const [low, high] = [Math.min(...values), Math.max(...values)];
      const [a, b] = this.log[axis] ? [low / 1.15, high * 1.15] : [Math.min(0, low), high * 1.05];
      const falling = panel[`${axis}_range`][0] > panel[`${axis}_range`][1];
      return falling ? [b, a] : [a, b];
    }

    draw() {
      const { svg, panel } = this, width = this.holder.clientWidth;
      if (!width) return;
      this.width = width;
      svg.replaceChildren();
      const longest = Math.max(0, ...panel.y_names.map(([, name]) => name.length));
      const LEFT = Math.max(NUMBERS, Math.min(width / 3, LETTER * longest + 8));
      const fits = Math.floor((LEFT - 8) / LETTER) + 1;
      svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
      svg.setAttribute("height", HEIGHT);
      const x = scale(this.range("x", 0), this.log.x, panel.x_names, LEFT, width - RIGHT);
      const y = scale(this.range("y", 1), this.log.y, panel.y_names, HEIGHT - BOTTOM, TOP);
      this.place = ([a, b]) => [x.place(a), y.place(b)];
      const clip = element("clipPath", { id: this.id }, element("defs", {}, svg));
      element("rect", { x: LEFT, y: TOP, width: width - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM }, clip);
      let last = -Infinity;
      for (const [value, name] of x.ticks) {
        const at = x.place(value), text = name.length > 12 ? `${name.slice(0, 11)}\u2026` : name;
        if (at < LEFT - 1 || at > width - RIGHT + 1) continue;
        element("line", { class: "grid", x1: at, x2: at, y1: TOP, y2: HEIGHT - BOTTOM }, svg);
        if (Math.abs(at - last) < LETTER * text.length + 6) continue;
        last = at;
        element("text", { x: at, y: HEIGHT - 8, "text-anchor": "middle" }, svg).textContent = text;
      }
      for (const [value, name] of y.ticks) {
        const at = y.place(value);
        if (at < TOP - 1 || at > HEIGHT - BOTTOM + 1) continue;
        element("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: at, y2: at }, svg);
        const text = name.length > fits ? `${name.slice(0, fits - 1)}\u2026` : name;
        element("text", { x: LEFT - 5, y: at + 4, "text-anchor": "end" }, svg).textContent = text;
      }
      const inside = element("g", { "clip-path": `url(#${this.id})` }, svg);
      const path = (points) => points.map(this.place).map((p) => p.map((v) => v.toFixed(1)).join(" ")).join("L");
      const possible = (points) => points.filter(([a, b]) => (!this.log.x || a > 0) && (!this.log.y || b > 0));
      for (const [colour, corners] of panel.bands) {
        const kept = possible(corners);
        if (kept.length) element("path", { d: `M${path(kept)}Z`, fill: themed(colour), opacity: 0.2 }, inside);
      }
      for (const [colour, ends] of panel.bars) {
        const kept = possible(ends);
        if (kept.length) element("path", { d: `M${path(kept)}`, stroke: themed(colour), fill: "none" }, inside);
      }
      for (const curve of panel.curves) {
        const colour = themed(curve.colour), points = possible(curve.points);
        if (!points.length) continue;
        if (curve.joined) {
          const dashes = curve.dashes.length ? { "stroke-dasharray": curve.dashes.join(" ") } : {};
          element("path", { d: `M${path(points)}`, fill: "none", stroke: colour, "stroke-width": 1.6, ...dashes }, inside);
        }
        if (curve.marked) {
          const look = curve.filled ? { fill: colour } : { class: "hollow" };
          for (const [cx, cy] of points.map(this.place)) {
            element("circle", { cx, cy, r: 3.2, stroke: colour, ...look }, inside);
          }
        }
      }
      element("rect", { class: "frame", x: LEFT, y: TOP, width: width - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM }, svg);
      this.cursor = element("circle", { class: "cursor", r: 7, visibility: "hidden" }, svg);
      if (this.at) this.mark();
    }

    nearest(event) {
      const box = this.svg.getBoundingClientRect();
      const [px, py] = [event.clientX - box.left, event.clientY - box.top];
      let best = Infinity;
      this.panel.curves.forEach((curve, c) => curve.points.forEach((point, i) => {
        const [cx, cy] = this.place(point), away = (cx - px) ** 2 + (cy - py) ** 2;
        if (away < best) [best, this.at] = [away, { c, i }];
      }));
      if (this.at) this.mark();
    }

    step(event) {
      const { curves } = this.panel, moves = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
      const move = moves[event.key];
      if (!move) return;
      event.preventDefault();
      if (this.at) {
        this.at.c = (this.at.c + move[0] + curves.length) % curves.length;
        const count = curves[this.at.c].points.length;
        this.at.i = Math.max(0, Math.min(count - 1, this.at.i + move[1]));
      } else this.at = { c: 0, i: 0 };
      this.mark();
    }

    mark() {
      const curve = this.panel.curves[this.at.c], point = curve.points[this.at.i];
      const [cx, cy] = this.place(point);
      if (!Number.isFinite(cx) || !Number.isFinite(cy)) return;
      for (const [key, value] of Object.entries({ cx, cy, visibility: "visible" })) this.cursor.setAttribute(key, value);
      const word = (value, names) => {
        const found = names.find(([at]) => Math.abs(at - value) < 1e-9 * (1 + Math.abs(at)));
        return found ? found[1] : shown(value);
      };
      this.readout.replaceChildren();
      if (curve.name >= 0) {
        const label = this.names[curve.name].cloneNode(true);
        this.readout.append(label, ": ");
      }
      if (curve.borrowed && curve.dashes.length) this.readout.append("dashed, ");
      this.readout.append(`x = ${word(point[0], this.panel.x_names)}, y = ${word(point[1], this.panel.y_names)}`);
    }
  }

  const open = (details, number) => {
    const { panels } = JSON.parse(details.querySelector("script").textContent);
    const names = [...details.querySelectorAll(".legend li > span")];
    const readout = details.querySelector(".readout");
    for (const section of details.querySelectorAll(".panel")) {
      const index = Number(section.dataset.panel);
      new Chart(panels[index], section.querySelector(".plot"), names, readout, `plot-${number}-${index}`);
    }
  };
  document.querySelectorAll("details.chart").forEach((details, number) => {
    details.hidden = false;
    details.addEventListener("toggle", () => {
      if (details.open && !details.dataset.drawn) {
        details.dataset.drawn = "yes";
        open(details, number);
      }
    });
  });
})();
