// Lesson 4: support function around a body, its mean over directions, cuts and shadows, three terms.
(() => {
  const { plane, short } = Lesson;
  const names = ["ball", "cube", "cross-polytope"];
  const corners = (s, d) => d.plane[s.seen];
  const support = (s, d, u) => (corners(s, d) ? plane.support(corners(s, d), u) : 1);
  const touching = (s, d, u) => (corners(s, d) ? corners(s, d).reduce((x, y) => (plane.dot(u, y) > plane.dot(u, x) ? y : x)) : u);
  const shape = (s, p, d) => {
    p.axes({ x: [-2.2, 2.2], y: [-2.2, 2.2], equal: true });
    p.poly(corners(s, d) ? plane.around(corners(s, d)) : plane.disc(1), "K", { label: "K" });
    p.arrow([0, 0], plane.direction(s.turn), "truth", { label: "u" });
  };
  const around = Array.from({ length: 121 }, (_, i) => 3 * i);
  const rounded = (radii) => radii.map((r, i) => plane.direction((360 * i) / radii.length).map((x) => r * x));

  Lesson.pictures([
    {
      panels: 2,
      predict: {
        ask: "Push a line at a right angle to u outwards as long as it meets K. Drag the ring to the point where it touches last.",
        at: [1.2, -1.2], truth: (s) => touching(s, Lesson.data, plane.direction(s.turn)),
        base: (s, [p, q], d) => { shape(s, p, d); q.axes({ x: [0, 360], y: [-1, 3.8], xlabel: "direction, degrees" }); },
      },
      handles: () => [{ kind: "h", name: "direction u", at: (s) => plane.direction(s.turn), to: (s, p) => Lesson.set("turn", plane.degrees(p)), keys: (s, step) => Lesson.set("turn", s.turn + 5 * step) },
        { panel: 1, kind: "h", name: "direction u on the curve", at: (s) => [s.turn, support(s, Lesson.data, plane.direction(s.turn))], to: (s, [x]) => Lesson.set("turn", x) }],
      draw(s, [p, q], d) {
        const u = plane.direction(s.turn), v = u.map((x) => -x), [ahead, behind] = [u, v].map((x) => support(s, d, x));
        shape(s, p, d);
        p.hyperplane(u, ahead, "h", { label: "supporting lines" });
        p.hyperplane(v, behind, "h");
        p.dots([touching(s, d, u)], "h", { r: 6 });
        q.axes({ x: [0, 360], y: [-1, 3.8], xlabel: "direction, degrees", xticks: [0, 90, 180, 270, 360].map((x) => [x, x]) });
        const h = around.map((t) => support(s, d, plane.direction(t)));
        q.line(around.map((t, i) => [t, h[i]]), "h", { label: "h(u)" });
        q.line(around.map((t, i) => [t, h[i] + h[(i + 60) % 120]]), "grey", { label: "breadth", dash: true });
        q.line([[s.turn, -2], [s.turn, 9]], "truth", { width: 1 });
        return `h(u) = ${ahead.toFixed(3)}, breadth(u) = ${(ahead + behind).toFixed(3)}`;
      },
    },
    {
      panels: 2,
      handles: (s, d) => [{ panel: 1, kind: "w", name: "number of directions", at: () => [s.draws, d.known[s.which][Lesson.place("dimension")]], to: (_, [x]) => Lesson.set("draws", x), keys: (_, step) => Lesson.step("draws", step) }],
      draw(s, [p, q], d) {
        const at = Lesson.place("dimension"), values = d.reaches[s.which][at].slice(0, s.draws), known = d.known[s.which][at];
        const mean = values.reduce((a, b) => a + b) / s.draws, std = Math.sqrt(values.reduce((a, b) => a + (b - mean) ** 2, 0) / s.draws);
        const high = 1.05 * Math.max(...values), bins = new Array(30).fill(0);
        for (const v of values) bins[Math.floor((30 * v) / high)] += 1;
        p.axes({ x: [0, high], y: [0, 1.15 * Math.max(...bins)], xlabel: "h(g) of one direction", ylabel: "directions" });
        p.bars(bins.map((n, i) => [(i * high) / 30, ((i + 1) * high) / 30, 0, n]), "h");
        p.line([[known, 0], [known, 1e5]], "w", { label: "w(K)" });
        q.axes({ x: [1, 1000], logx: true, y: [0.6 * known, 1.4 * known], xlabel: "directions" });
        let sum = 0;
        const running = values.map((v, i) => (sum += v) / (i + 1)), error = running.map((_, i) => (2 * std) / Math.sqrt(i + 1)), xs = running.map((_, i) => i + 1);
        q.band(xs, running.map((m, i) => m - error[i]), running.map((m, i) => m + error[i]), "h");
        q.line(running.map((m, i) => [i + 1, m]), "h", { label: "mean so far" });
        q.line([[1, known], [1000, known]], "w", { label: `w(K) = ${known.toFixed(3)}` });
        return `spread / mean = ${(std / mean).toFixed(3)}`;
      },
    },
    {
      panels: 2,
      handles: () => [{ track: "high", kind: "K", name: "dimension m" }],
      draw(s, [p, q], d) {
        const seen = d.seen[s.pictured][Lesson.place("high")][s.plane], reach = (points) => 1.15 * Math.max(1.3, ...points.flat().map(Math.abs));
        [["cut", rounded(seen.cut)], ["shadow", seen.shadow]].forEach(([name, points], i) => {
          const panel = [p, q][i], r = reach(points);
          panel.axes({ x: [-r, r], y: [-r, r], equal: true, title: `${name} of the ${names[s.pictured]}` });
          panel.poly(points, "K", { label: name });
          panel.line([...plane.disc(1), [1, 0]], "grey", { width: 1.5, label: "unit ball" });
        });
        return `m = ${s.high}`;
      },
    },
    Lesson.threeBounds({
      bits: "log_size", alpha: "accuracy", names: ["k / α", "√(k ln N) / α", "ln N / α²"],
      axes: { y: [3, 3e7], xlabel: "number of queries k", ylabel: "records, at ε = 1" },
      said: (L, a) => `the terms cross at k = ${L.toFixed(0)} and k = ${(L / a ** 2).toFixed(0)}`,
    }),
  ]);
})();
