"use strict";
// Pictures of a lesson that answer to the mouse, to touch and to the keyboard. The page holds for
// each picture a <figure data-follows="names of controls">, and the script of the lesson calls
// Lesson.pictures([{draw, handles, predict}, ...]), one entry for each figure, in their order.
const Lesson = (() => {
  const { make, element, clamp, short, ticksOf, scale } = Draw;
  const WIDTH = 400, HEIGHT = 330, LEFT = 48, RIGHT = 18, TOP = 24, BOTTOM = 40;
  const article = document.querySelector("article.lesson");
  const state = {}, controls = {}, figures = [], start = {};
  let clips = 0;

  // One drawing with its own axes. Kinds of marks are classes that lesson.css colours.
  class Panel {
    constructor(holder, name) {
      const box = element("div", { class: "panel" }, holder);
      this.title = element("div", { class: "title" }, box);
      this.svg = make("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": name }, box);
      this.clip = `clip${clips++}`;
      make("rect", { x: LEFT, y: TOP, width: WIDTH - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM },
        make("clipPath", { id: this.clip }, make("defs", {}, this.svg)));
      this.frame = make("g", { class: "frame" }, this.svg);
      this.marks = make("g", { "clip-path": `url(#${this.clip})` }, this.svg);
      this.notes = make("g", {}, this.svg);
      this.knobs = make("g", {}, this.svg);
      this.key = element("div", { class: "keys" }, box);
    }

    // Clears the drawing and sets the ranges `x` and `y`; `equal` gives both the same unit.
    axes({ x, y, logx, logy, equal, xlabel = "", ylabel = "", title = "", xticks, yticks }) {
      for (const part of [this.frame, this.marks, this.notes, this.key]) part.replaceChildren();
      this.title.textContent = title;
      const [w, h] = [WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM];
      if (equal) {
        const unit = Math.max((x[1] - x[0]) / w, (y[1] - y[0]) / h);
        const wide = ([a, b], size) => [(a + b - unit * size) / 2, (a + b + unit * size) / 2];
        [x, y] = [wide(x, w), wide(y, h)];
      }
      [this.px, this.ux] = scale(x, logx, LEFT, WIDTH - RIGHT);
      [this.py, this.uy] = scale(y, logy, HEIGHT - BOTTOM, TOP);
      Object.assign(this, { x, y });
      for (const [value, name] of xticks || ticksOf(...x, logx)) {
        const at = this.px(value);
        make("line", { x1: at, x2: at, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 4 }, this.frame);
        make("text", { x: at, y: HEIGHT - BOTTOM + 17, "text-anchor": "middle" }, this.frame, name);
      }
      for (const [value, name] of yticks || ticksOf(...y, logy)) {
        const at = this.py(value);
        make("line", { x1: LEFT - 4, x2: LEFT, y1: at, y2: at }, this.frame);
        make("text", { x: LEFT - 7, y: at + 4, "text-anchor": "end" }, this.frame, name);
      }
      make("rect", { x: LEFT, y: TOP, width: w, height: h }, this.frame);
      make("text", { x: LEFT + w / 2, y: HEIGHT - 5, "text-anchor": "middle" }, this.frame, xlabel);
      make("text", { x: 2, y: TOP - 9 }, this.frame, ylabel);
    }
    at([x, y]) { return [clamp(this.px(x), -4000, 4000), clamp(this.py(y), -4000, 4000)]; }
    data([x, y]) { return [this.ux(x), this.uy(y)]; }
    path(points) { return points.map((point) => this.at(point).map((v) => v.toFixed(1)).join()).join(" "); }
    named(kind, label, form) {
      if (!label) return;
      const key = element("span", {}, this.key);
      element("i", { class: `${kind} ${form}` }, key);
      key.append(label);
    }
    line(points, kind, { label, dash, width = 2 } = {}) {
      const style = { points: this.path(points), class: `${kind} line`, "stroke-width": width };
      make("polyline", dash ? { ...style, "stroke-dasharray": "6 4" } : style, this.marks);
      this.named(kind, label, dash ? "dashed" : "stroke");
    }
    poly(points, kind, { label, empty } = {}) {
      make("polygon", { points: this.path(points), class: `${kind} ${empty ? "line" : "area"}` }, this.marks);
      this.named(kind, label, empty ? "stroke" : "area");
    }
    band(xs, lows, highs, kind, options) {
      this.poly([...xs.map((x, i) => [x, lows[i]]), ...xs.map((x, i) => [x, highs[i]]).reverse()], kind, options);
    }
    dots(points, kind, { label, r = 4, empty } = {}) {
      for (const point of points) {
        const [cx, cy] = this.at(point);
        make("circle", { cx, cy, r, class: `${kind} ${empty ? "ring" : "dot"}` }, this.marks);
      }
      this.named(kind, label, "round");
    }
    // A line with a dot at each of its points.
    curve(points, kind, options) {
      this.line(points, kind, options);
      this.dots(points, kind, { r: 3 });
    }
    arrow(from, to, kind, { label } = {}) {
      const [[a, b], [c, d]] = [this.at(from), this.at(to)], size = Math.hypot(c - a, d - b);
      if (size > 1) {
        const [u, v] = [(c - a) / size, (d - b) / size], head = Math.min(10, size);
        const side = (s) => `${c - head * u + s * 4 * v},${d - head * v - s * 4 * u}`;
        make("path", { d: `M${a},${b}L${c},${d}M${side(1)}L${c},${d}L${side(-1)}`, class: `${kind} line`, "stroke-width": 2 }, this.marks);
      }
      this.named(kind, label, "stroke");
    }
    // The line {z: <n, z> = c}.
    hyperplane([a, b], c, kind, options) {
      const size = a * a + b * b, reach = 4 * (this.x[1] - this.x[0]) / Math.sqrt(size);
      const middle = [(this.x[0] + this.x[1]) / 2, (this.y[0] + this.y[1]) / 2], t = (c - dot([a, b], middle)) / size;
      const [x, y] = [middle[0] + t * a, middle[1] + t * b];
      this.line([[x - b * reach, y + a * reach], [x + b * reach, y - a * reach]], kind, options);
    }
    bars(boxes, kind, { label } = {}) {
      for (const [x0, x1, y0, y1] of boxes) {
        const [a, b] = [this.at([x0, y0]), this.at([x1, y1])];
        make("rect", { x: Math.min(a[0], b[0]), y: Math.min(a[1], b[1]), width: Math.abs(a[0] - b[0]), height: Math.abs(a[1] - b[1]), class: `${kind} area` }, this.marks);
      }
      this.named(kind, label, "area");
    }
    text(at, words, kind = "truth", anchor = "start") {
      const [x, y] = this.at(at);
      make("text", { x, y, class: kind, "text-anchor": anchor }, this.notes, words);
    }
    // A square grid of values from -1 (first data set) to 1 (second), as little squares.
    grid(xs, ys, value) {
      const [dx, dy] = [this.px(xs[1]) - this.px(xs[0]), this.py(ys[0]) - this.py(ys[1])];
      for (const x of xs) {
        for (const y of ys) {
          const level = clamp(value(x, y), -1, 1), [px, py] = this.at([x, y]);
          make("rect", { x: px - dx / 2, y: py - dy / 2, width: dx + 0.3, height: dy + 0.3, class: level > 0 ? "red cell" : "K cell", "fill-opacity": Math.abs(level).toFixed(2) }, this.marks);
        }
      }
    }
    // A convex solid seen from `turn` degrees; `faces` hold the places of their corners.
    solid({ corners, faces }, turn, kind, more = []) {
      const t = (turn * Math.PI) / 180, [c, s, e] = [Math.cos(t), Math.sin(t), 0.35];
      const seen = ([x, y, z]) => [-s * x + c * y, Math.cos(e) * z - Math.sin(e) * (c * x + s * y), Math.cos(e) * (c * x + s * y) + Math.sin(e) * z];
      const depth = (face) => face.reduce((sum, i) => sum + seen(corners[i])[2] / face.length, 0);
      for (const face of [...faces].sort((f, g) => depth(f) - depth(g))) this.poly(face.map((i) => seen(corners[i])), `${kind} face`);
      for (const segment of more) this.line(segment.map(seen), "truth", { width: 1.5 });
      return seen;
    }
  }

  // Closed forms in the plane. A polygon is a list of its corners, counted around.
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1];
  const sub = (a, b) => [a[0] - b[0], a[1] - b[1]];
  const plane = {
    dot, sub,
    add: (a, b) => [a[0] + b[0], a[1] + b[1]],
    scaled: (points, t) => points.map(([x, y]) => [t * x, t * y]),
    direction: (degrees) => [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)],
    degrees: ([x, y]) => ((Math.atan2(y, x) * 180) / Math.PI + 360) % 360,
    around: (points) => {
      const m = points.reduce((sum, p) => [sum[0] + p[0] / points.length, sum[1] + p[1] / points.length], [0, 0]);
      return [...points].sort((a, b) => Math.atan2(...sub(a, m).reverse()) - Math.atan2(...sub(b, m).reverse()));
    },
    disc: (r, [x, y] = [0, 0]) => Array.from({ length: 90 }, (_, i) => [x + r * Math.cos((i * Math.PI) / 45), y + r * Math.sin((i * Math.PI) / 45)]),
    support: (polygon, u) => Math.max(...polygon.map((p) => dot(u, p))),
    edges: (polygon) => polygon.map((a, i) => {
      const b = polygon[(i + 1) % polygon.length];
      return { a, b, n: [b[1] - a[1], a[0] - b[0]] };
    }),
    gauge: (polygon, v) => Math.max(0, ...plane.edges(polygon).map(({ a, n }) => dot(n, v) / dot(n, a))),
    nearest: (polygon, p) => {
      const edges = plane.edges(polygon);
      if (edges.every(({ a, n }) => dot(n, sub(p, a)) <= 1e-12)) return p;
      const found = edges.map(({ a, b }) => {
        const d = sub(b, a), t = clamp(dot(sub(p, a), d) / dot(d, d), 0, 1);
        return [a[0] + t * d[0], a[1] + t * d[1]];
      });
      return found.reduce((best, q) => (Math.hypot(...sub(q, p)) < Math.hypot(...sub(best, p)) ? q : best));
    },
    // The two points in which the line {z: <n, z> = c} meets the polygon's edges.
    cut: (polygon, n, c) => plane.edges(polygon).flatMap(({ a, b }) => {
      const [f, g] = [dot(n, a) - c, dot(n, b) - c];
      return f * g <= 1e-15 && f !== g ? [[a[0] + (f / (f - g)) * (b[0] - a[0]), a[1] + (f / (f - g)) * (b[1] - a[1])]] : [];
    }),
  };

  // Controls: the state holds numbers, for a choice the place of the option.
  const place = (name) => controls[name].values.reduce((best, v, i, all) => (Math.abs(v - state[name]) < Math.abs(all[best] - state[name]) ? i : best), 0);
  const set = (name, value) => {
    const { values, even } = controls[name];
    if (values && even) value = clamp(value, values[0], values[values.length - 1]);
    state[name] = value;
    if (values && !even) state[name] = values[place(name)];
    for (const show of controls[name].shows) show();
    for (const figure of figures) if (figure.follows.includes(name)) figure.draw();
    remember();
  };
  const step = (name, by) => {
    const { values, even } = controls[name], at = clamp(place(name) + by, 0, values.length - 1);
    set(name, even ? state[name] + by * (values[1] - values[0]) : values[at]);
  };
  let timer = 0;
  const remember = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const changed = Object.keys(state).filter((name) => String(state[name]) !== String(start[name]));
      const hash = changed.map((name) => `${name}=${[state[name]].flat().map((v) => Number(v.toPrecision(6))).join("+")}`).join("&");
      history.replaceState(null, "", `#${hash}`);
    }, 400);
  };
  const bind = (input) => {
    const name = input.name, known = JSON.parse(input.closest("[data-control]").dataset.control);
    const control = (controls[name] = controls[name] || { ...known, shows: [] });
    if (!(name in state)) start[name] = state[name] = known.start;
    const readout = input.parentNode.querySelector("output");
    if (input.type === "checkbox") {
      const index = Number(input.value);
      input.addEventListener("change", () => set(name, [...state[name].filter((i) => i !== index), ...(input.checked ? [index] : [])].sort()));
      control.shows.push(() => { input.checked = state[name].includes(index); });
    } else {
      input.addEventListener("input", () => set(name, control.values ? control.values[input.value] : Number(input.value)));
      control.shows.push(() => {
        input.value = control.values ? place(name) : state[name];
        if (readout) readout.textContent = short(state[name]);
        if (control.values) input.setAttribute("aria-valuetext", short(state[name]));
      });
    }
  };

  class Picture {
    constructor(figure, spec) {
      Object.assign(this, { figure, spec, follows: figure.dataset.follows.split(" "), guess: null });
      this.holder = element("div", { class: "panels" });
      figure.prepend(this.holder);
      this.panels = Array.from({ length: spec.panels ?? 1 }, () => new Panel(this.holder, figure.dataset.name));
      this.output = element("output", { class: "readout" });
      this.holder.after(this.output);
      this.controls = figure.querySelector(".controls");
      this.knobs = [];
      if (spec.predict) this.ask(spec.predict);
      const slider = figure.querySelector("input[type=range]");
      if (slider) this.player(slider);
    }
    ask({ ask, at }) {
      this.guess = [...at];
      this.open = false;
      this.controls.hidden = true;
      this.question = element("p", { class: "predict" }, null, `${ask} `);
      this.holder.before(this.question);
      this.button = element("button", { type: "button" }, this.question, "Reveal");
      this.button.addEventListener("click", () => this.reveal());
    }
    reveal() {
      if (!this.question || this.open) return;
      this.open = true;
      this.controls.hidden = false;
      this.button.remove();
      const [x, y] = this.spec.predict.truth(state), [a, b] = this.guess;
      const [mine, right] = this.spec.predict.along === "x" ? [a, x] : [b, y];
      const off = this.spec.predict.ratio ? `by a factor of ${short(Math.max(mine / right, right / mine))}` : `by ${short(Math.hypot(a - x, b - y))}`;
      this.question.append(`Your guess, the ring, was off ${off}.`);
      this.draw();
    }
    player(slider) {
      const button = element("button", { type: "button", class: "play" }, null, "▶ play");
      slider.closest("label").append(button);
      let running = 0;
      button.addEventListener("click", () => {
        if (running) { clearInterval(running); running = 0; button.textContent = "▶ play"; return; }
        if (slider.value === slider.max) slider.value = slider.min;
        button.textContent = "■ stop";
        running = setInterval(() => {
          slider.value = Number(slider.value) + 1;
          slider.dispatchEvent(new Event("input"));
          if (slider.value === slider.max) button.click();
        }, 180);
      });
    }
    draw() {
      const { spec, panels } = this, asking = this.guess && !this.open;
      const said = (asking ? spec.predict.base : spec.draw)(state, panels, Lesson.data);
      if (said && said.html) { this.output.innerHTML = said.html; return; }
      this.output.textContent = asking ? "" : said.replace(/-(?=\d)/g, "−").replace(/−(?=0\.?0*(?!\.?\d))/g, "");
      if (this.guess) panels[spec.predict.panel ?? 0].dots([this.guess], "guess", { r: 9, empty: true });
      const free = ({ along }, [x, y], [a, b]) => (along === "y" ? [a, y] : along === "x" ? [x, b] : [x, y]);
      const handles = asking
        ? [{ panel: spec.predict.panel, name: "your guess", kind: "guess", at: () => this.guess, to: (s, p) => { this.guess = free(spec.predict, p, this.guess); this.draw(); } }]
        : (spec.handles ? spec.handles(state, Lesson.data) : []).map((handle) => (handle.track ? this.track(handle) : handle));
      while (this.knobs.length > handles.length) this.knobs.pop().remove();
      handles.forEach((handle, i) => this.knob(i, handle));
    }
    // A handle for a slider that has no place in the picture: it runs along the lower edge.
    track({ track, panel = 0, ...more }) {
      const { values } = controls[track], { x, y, px, py, ux, uy } = this.panels[panel], last = values.length - 1;
      const [from, to] = [px(x[0]) + 15, px(x[1]) - 15], level = uy(py(y[0]) - 12);
      this.panels[panel].line([[ux(from), level], [ux(to), level]], "grey", { width: 1 });
      return { panel, ...more, at: () => [ux(from + ((to - from) * place(track)) / last), level],
        to: (s, point) => set(track, values[clamp(Math.round((last * (px(point[0]) - from)) / (to - from)), 0, last)]),
        keys: (s, by) => step(track, by) };
    }
    // Places the i-th handle, and makes it when it is new.
    knob(i, handle) {
      const panel = this.panels[handle.panel ?? 0];
      if (this.knobs[i] && this.knobs[i].parentNode !== panel.knobs) this.knobs.splice(i, 1)[0].remove();
      if (!this.knobs[i]) {
        const knob = make("circle", { r: 9, tabindex: 0, role: "slider" }, panel.knobs);
        this.knobs.splice(i, 0, knob);
        const moved = (event) => {
          const box = panel.svg.getBoundingClientRect(), unit = WIDTH / box.width;
          knob.held.to(state, panel.data([(event.clientX - box.left) * unit, (event.clientY - box.top) * unit]));
        };
        knob.addEventListener("pointerdown", (event) => {
          knob.setPointerCapture(event.pointerId);
          knob.held = knob.handle;
          knob.onpointermove = moved;
          knob.focus();
          event.preventDefault();
        });
        for (const name of ["pointerup", "pointercancel"]) knob.addEventListener(name, () => { knob.onpointermove = null; });
        knob.addEventListener("keydown", (event) => {
          const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
          if (!step) return;
          event.preventDefault();
          event.stopPropagation();
          if (knob.handle.keys) { knob.handle.keys(state, step[0] - step[1]); return; }
          const [x, y] = panel.at(knob.handle.at(state)), size = event.shiftKey ? 1 : 8;
          knob.handle.to(state, panel.data([x + size * step[0], y + size * step[1]]));
        });
      }
      const knob = this.knobs[i], point = handle.at(state), [cx, cy] = panel.at(point);
      knob.handle = handle;
      const words = `(${point.map(short).join(", ")})`;
      const shown = { cx: clamp(cx, LEFT, WIDTH - RIGHT), cy: clamp(cy, TOP, HEIGHT - BOTTOM), class: `knob ${handle.kind}`, "aria-label": handle.name, "aria-valuenow": point[0].toPrecision(4), "aria-valuetext": words };
      for (const [key, value] of Object.entries(shown)) knob.setAttribute(key, value);
    }
  }

  // Questions that the page checks: a number, a choice, or a place of the handles.
  const check = (question, index) => {
    const said = element("span", { class: "said", role: "status" }), known = question.dataset;
    const answer = (right) => { said.textContent = right ? ` Right. ${known.why}` : " Not yet: try again."; said.className = `said ${right ? "right" : "wrong"}`; };
    const input = question.querySelector("input[type=text]");
    const test = () => {
      if (known.answer) return Math.abs(Number(input.value.replace(",", ".").replace("−", "-")) - known.answer) <= Number(known.within) && input.value.trim() !== "";
      if (known.place) return Lesson.checks[index](state, Lesson.data);
      const chosen = question.querySelector("input:checked");
      return chosen !== null && chosen.value === known.right;
    };
    const button = element("button", { type: "button" }, question, "Check");
    button.addEventListener("click", () => answer(test()));
    if (input) input.addEventListener("keydown", (event) => { if (event.key === "Enter") answer(test()); });
    question.append(said);
  };

  // What a coloured symbol stands for, beside the pointer.
  const explain = () => {
    const tip = element("div", { class: "tip", role: "tooltip", hidden: "" }, article);
    article.addEventListener("pointerover", (event) => {
      const symbol = event.target.closest && event.target.closest(".symbol");
      tip.hidden = !symbol;
      if (!symbol) return;
      const kind = [...symbol.classList].find((name) => name !== "symbol");
      tip.textContent = article.querySelector(`.symbols .${kind}`).parentNode.textContent;
      tip.style.left = `${Math.min(event.clientX, innerWidth - 260)}px`;
      tip.style.top = `${event.clientY + 18}px`;
    });
  };

  // Slides: one figure at a time under the heading of its section.
  const slides = () => {
    const bar = element("div", { class: "modes" }), all = [...article.querySelectorAll(":scope > figure")];
    article.prepend(bar);
    const button = element("button", { type: "button" }, bar, "Slides");
    element("button", { type: "button" }, bar, "Print").addEventListener("click", () => print());
    let at = -1;
    const show = (next) => {
      at = next;
      article.classList.toggle("slides", at >= 0);
      button.textContent = at < 0 ? "Slides" : `Slide ${at + 1} of ${all.length}: Escape ends`;
      for (const part of article.querySelectorAll(".current")) part.classList.remove("current");
      if (at < 0) return;
      let head = all[at];
      head.classList.add("current");
      while (head && !/^H[12]$/.test(head.tagName)) head = head.previousElementSibling;
      if (head) head.classList.add("current");
    };
    button.addEventListener("click", () => show(at < 0 ? 0 : -1));
    addEventListener("keydown", (event) => {
      if (at < 0 || /INPUT|SELECT/.test(event.target.tagName)) return;
      const step = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1 }[event.key];
      if (step) show(clamp(at + step, 0, all.length - 1));
      if (event.key === "Escape") show(-1);
    });
  };

  // Formulas that are wider than the page get smaller letters.
  const fit = () => {
    for (const formula of article.querySelectorAll(".formula, .long")) {
      formula.style.fontSize = "";
      const ratio = formula.clientWidth / formula.scrollWidth;
      if (ratio < 1) formula.style.fontSize = `${Math.max(0.5, 0.98 * ratio)}em`;
    }
  };

  const pictures = (specs) => {
    for (const input of article.querySelectorAll("[data-control] input, [data-control] select")) bind(input);
    for (const pair of location.hash.slice(1).split("&")) {
      const [name, text = ""] = pair.split("="), value = text.split("+").map(Number);
      if (name in state && value.every(Number.isFinite)) state[name] = Array.isArray(state[name]) ? value : value[0];
    }
    article.querySelectorAll("figure[data-follows]").forEach((figure, i) => figures.push(new Picture(figure, specs[i])));
    for (const name of Object.keys(state)) set(name, state[name]);
    article.querySelectorAll(".question").forEach(check);
    addEventListener("beforeprint", () => {
      for (const figure of figures) figure.reveal();
      for (const answer of article.querySelectorAll("details")) answer.open = true;
    });
    explain();
    slides();
    fit();
    addEventListener("resize", fit);
  };
  // Three bounds on the records that k queries need, as controls set N = 2^bits and the error alpha.
  // The bounds cross at ln N and at ln N / alpha^2, where the handles are.
  const threeBounds = ({ bits, alpha, names, axes, said }) => {
    const read = (s) => [s[bits] * Math.LN2, s[alpha]], ks = Array.from({ length: 121 }, (_, i) => 10 ** (i / 20));
    return {
      handles: (s) => {
        const [L, a] = read(s);
        return [{ kind: "h", name: "first crossing: ln N", at: () => [L, L / a], to: (_, [x]) => set(bits, Math.round(x / Math.LN2)), keys: (_, by) => step(bits, by) },
          { kind: "w", name: "second crossing: error alpha", at: () => [L / a ** 2, L / a ** 2], to: (_, [x]) => set(alpha, Math.sqrt(L / x)), keys: (_, by) => step(alpha, by) }];
      },
      draw(s, [p]) {
        const [L, a] = read(s), terms = [(k) => k / a, (k) => Math.sqrt(k * L) / a, () => L / a ** 2];
        p.axes({ x: [1, 1e6], logx: true, logy: true, ...axes });
        p.line(ks.map((k) => [k, Math.min(...terms.map((f) => f(k)))]), "grey", { label: "the least", width: 8 });
        terms.forEach((f, i) => p.line(ks.map((k) => [k, f(k)]), ["K", "h", "w"][i], { label: names[i], width: 1.5 }));
        return said(L, a, terms);
      },
    };
  };
  return { pictures, threeBounds, plane, state, set, step, place, figures, controls, data: {}, checks: {}, short, clamp };
})();
