"use strict";
// Charts of the curves in the page: drawn when first opened, with values under the pointer or, by
// the arrow keys, under the keyboard, and with either scale on either axis.
(() => {
  const { make, element, short, ticksOf, scale } = Draw;
  const HEIGHT = 260, RIGHT = 12, TOP = 8, BOTTOM = 24;
  // Room for numbers, or for as much of the words as a third of the chart holds.
  const LETTER = 7, NUMBERS = 62;

  const themed = (colour) => (colour === "#000000" ? "var(--pst-color-text-base)" : colour);

  class Chart {
    constructor(panel, holder, names, readout, id) {
      Object.assign(this, { panel, holder, names, readout, id });
      this.log = { x: panel.x_log, y: panel.y_log };
      this.at = null;
      const values = panel.curves.flatMap((curve) => curve.points);
      const buttons = element("div", { class: "scales" }, holder);
      for (const [axis, index] of [["x", 0], ["y", 1]]) {
        const positive = values.every((point) => point[index] > 0);
        if (!positive || panel[`${axis}_names`].length) continue;
        const button = element("button", { type: "button" }, buttons);
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
      }
      const words = `${panel.title} ${panel.y_label} against ${panel.x_label}. Arrow keys move through the points.`;
      this.svg = make("svg", { tabindex: 0, role: "img", "aria-label": words }, holder);
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

    ticks(axis, index) {
      const names = this.panel[`${axis}_names`], ends = this.range(axis, index);
      return names.length ? names : ticksOf(Math.min(...ends), Math.max(...ends), this.log[axis]);
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
      const [x] = scale(this.range("x", 0), this.log.x, LEFT, width - RIGHT);
      const [y] = scale(this.range("y", 1), this.log.y, HEIGHT - BOTTOM, TOP);
      this.place = ([a, b]) => [x(a), y(b)];
      const clip = make("clipPath", { id: this.id }, make("defs", {}, svg));
      make("rect", { x: LEFT, y: TOP, width: width - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM }, clip);
      let last = -Infinity;
      for (const [value, name] of this.ticks("x", 0)) {
        const at = x(value), text = name.length > 12 ? `${name.slice(0, 11)}\u2026` : name;
        if (at < LEFT - 1 || at > width - RIGHT + 1) continue;
        make("line", { class: "grid", x1: at, x2: at, y1: TOP, y2: HEIGHT - BOTTOM }, svg);
        if (Math.abs(at - last) < LETTER * text.length + 6) continue;
        last = at;
        make("text", { x: at, y: HEIGHT - 8, "text-anchor": "middle" }, svg, text);
      }
      for (const [value, name] of this.ticks("y", 1)) {
        const at = y(value);
        if (at < TOP - 1 || at > HEIGHT - BOTTOM + 1) continue;
        make("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: at, y2: at }, svg);
        const text = name.length > fits ? `${name.slice(0, fits - 1)}\u2026` : name;
        make("text", { x: LEFT - 5, y: at + 4, "text-anchor": "end" }, svg, text);
      }
      const inside = make("g", { "clip-path": `url(#${this.id})` }, svg);
      const path = (points) => points.map(this.place).map((p) => p.map((v) => v.toFixed(1)).join(" ")).join("L");
      const possible = (points) => points.filter(([a, b]) => (!this.log.x || a > 0) && (!this.log.y || b > 0));
      for (const [colour, corners] of panel.bands) {
        const kept = possible(corners);
        if (kept.length) make("path", { d: `M${path(kept)}Z`, fill: themed(colour), opacity: 0.2 }, inside);
      }
      for (const [colour, ends] of panel.bars) {
        const kept = possible(ends);
        if (kept.length) make("path", { d: `M${path(kept)}`, stroke: themed(colour), fill: "none" }, inside);
      }
      for (const curve of panel.curves) {
        const colour = themed(curve.colour), points = possible(curve.points);
        if (!points.length) continue;
        if (curve.joined) {
          const dashes = curve.dashes.length ? { "stroke-dasharray": curve.dashes.join(" ") } : {};
          make("path", { d: `M${path(points)}`, fill: "none", stroke: colour, "stroke-width": 1.6, ...dashes }, inside);
        }
        if (curve.marked) {
          const look = curve.filled ? { fill: colour } : { class: "hollow" };
          for (const [cx, cy] of points.map(this.place)) {
            make("circle", { cx, cy, r: 3.2, stroke: colour, ...look }, inside);
          }
        }
      }
      make("rect", { class: "frame", x: LEFT, y: TOP, width: width - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM }, svg);
      this.cursor = make("circle", { class: "cursor", r: 7, visibility: "hidden" }, svg);
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
        return found ? found[1] : short(value);
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
