// Lesson 2: one record moves the answers, the norm that counts records, the loss at every output.
(() => {
  const { plane } = Lesson, K = [[0, 0], [1, 0], [1, 1]], own = [[0, 0], [0, 0], [1, 0], [1, 1]];
  const homes = [[-0.12, -0.12], [-0.12, 0.08], [1.1, -0.1], [1.12, 1.06]], names = ["healthy", "ill", "smokes", "smokes, ill"];
  const step = (s) => plane.sub(own[s.new], own[s.old]);
  const nearest = (p) => homes.reduce((best, home, i) => (Math.hypot(...plane.sub(home, p)) < Math.hypot(...plane.sub(homes[best], p)) ? i : best), 0);
  const record = (name, kind, words, shift) => ({ kind, name: words, at: (s) => plane.add(homes[s[name]], [shift, 0]), to: (s, p) => Lesson.set(name, nearest(p)), keys: (s, by) => Lesson.set(name, (s[name] + by + 4) % 4) });
  const vector = (s) => plane.direction(s.angle).map((x) => s.length * x);
  // The unit balls: K - K, the smallest cross-polytope around it and the smallest disc.
  const gauges = (v, d) => [plane.gauge(plane.around(d.KK), v), (Math.abs(v[0]) + Math.abs(v[1])) / 2, Math.hypot(...v) / Math.SQRT2];
  const left = (s, p) => {
    p.axes({ x: [-0.3, 1.3], y: [-0.3, 1.3], equal: true, xlabel: "q₁: smokes", ylabel: "q₂: smokes and is ill" });
    p.poly(K, "K", { label: "K" });
    p.named("grey", `was: ${names[s.old]}`, "round");
    p.named("truth", `becomes: ${names[s.new]}`, "round");
  };

  Lesson.pictures([
    {
      panels: 2,
      predict: {
        ask: "A healthy person becomes one who smokes and is ill. Drag the ring to the step that the sums make: right is one more smoker, up is one more who smokes and is ill.",
        panel: 1, at: [-0.6, 0.6], truth: step,
        base: (s, [p, q]) => { left(s, p); q.axes({ x: [-1.2, 1.2], y: [-1.2, 1.2], equal: true }); },
      },
      handles: () => [record("old", "grey", "the record is", 0), record("new", "truth", "and becomes", 0.09)],
      draw(s, [p, q], d) {
        const others = Array.from({ length: s.records - 1 }, (_, i) => own[i % 4]).reduce(plane.add, [0, 0]);
        const at = plane.add(others, own[s.old]).map((x) => x / s.records), v = step(s).map((x) => x / s.records), end = plane.add(at, v);
        left(s, p);
        p.dots([at], "Z");
        p.arrow(at, end, "Z", { label: "step of the answers" });
        q.axes({ x: [-1.2, 1.2], y: [-1.2, 1.2], equal: true });
        q.poly(plane.around(d.KK), "KK", { label: "K − K" });
        q.poly(plane.scaled(plane.around(d.KK), 1 / s.records), "KK", { label: "(K − K)/n" });
        q.arrow([0, 0], v, "Z", { label: "the same step" });
        return `from (${at.map((x) => x.toFixed(3)).join(", ")}) to (${end.map((x) => x.toFixed(3)).join(", ")}) in K`;
      },
    },
    {
      handles: () => [{ kind: "truth", name: "vector v", at: vector, to: (s, p) => { Lesson.set("length", Math.hypot(...p)); Lesson.set("angle", plane.degrees(p)); } }],
      draw(s, [p], d) {
        const v = vector(s), KK = plane.around(d.KK), norms = gauges(v, d);
        p.axes({ x: [-3.3, 3.3], y: [-3.3, 3.3], equal: true });
        p.poly(KK, "KK", { label: "K − K" });
        p.poly(plane.scaled(KK, norms[0]), "KK", { label: "t (K − K)" });
        p.arrow([0, 0], v, "truth", { label: "v" });
        return `v = (${v.map((x) => x.toFixed(3)).join(", ")}) is reached at t = ${norms[0].toFixed(3)}\nnorms: K − K ${norms[0].toFixed(3)}; cross-polytope ${norms[1].toFixed(3)}; disc ${norms[2].toFixed(3)}`;
      },
    },
    {
      handles: () => [{ track: "scale", kind: "Z", name: "scale of the noise" }],
      draw(s, [p], d) {
        const axis = Array.from({ length: 47 }, (_, i) => -3 + (7 * i) / 46), rate = s.epsilon / s.scale, worst = rate * gauges([1, 1], d)[s.ball];
        p.axes({ x: [-3, 4], y: [-3, 4], equal: true });
        p.grid(axis, axis, (x, y) => (rate * (gauges([x - 1, y - 1], d)[s.ball] - gauges([x, y], d)[s.ball])) / 3);
        p.poly(plane.around(d.KK), "truth", { empty: true, label: "K − K" });
        p.arrow([0, 0], [1, 1], "truth", { label: "v" });
        p.named("red", "speaks for the first data set", "area");
        p.named("K", "for the second", "area");
        return `largest loss ${worst.toFixed(3)}: the claim ${Number(s.epsilon.toFixed(3))} ${worst <= s.epsilon * (1 + 1e-9) ? "holds" : "is WRONG"}`;
      },
    },
  ]);
})();
