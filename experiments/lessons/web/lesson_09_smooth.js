// Lesson 9: Chebyshev polynomials, the body of moments, approximation, noise, one release, the rate.
(() => {
  const { plane, place } = Lesson, grid = (n, from = -1, to = 1) => Array.from({ length: n + 1 }, (_, i) => from + ((to - from) * i) / n);
  const moments = (x) => [x, 2 * x * x - 1, 4 * x ** 3 - 3 * x], curve = grid(80, 0, Math.PI).map((t) => moments(Math.cos(t)));
  const bump = (x, h) => Math.exp(-((x - 0.2) ** 2) / (2 * h * h));
  const query = (s, p) => {
    p.axes({ x: [-1, 1], y: [-0.5, 1.6], xlabel: "x" });
    p.line(grid(200).map((x) => [x, bump(x, s.bandwidth)]), "grey", { width: 5, label: "query" });
  };
  // The sum of the moments of x = cos(angle), and where it is least.
  const sum = (t, angle) => Array.from({ length: t }, (_, m) => Math.cos(m * angle)).reduce((a, b) => a + b);
  const least = (t) => grid(2000, 0, Math.PI).reduce((best, a) => (sum(t, a) < sum(t, best) ? a : best), 0);

  Lesson.pictures([
    {
      handles: () => [{ track: "order", kind: "K", name: "order m" }],
      draw(s, [p]) {
        p.axes({ x: [-1, 1], y: [-1.35, 1.1], xlabel: "x", ylabel: `T of order ${s.order}` });
        p.line(grid(400, 0, Math.PI).map((t) => [Math.cos(t), Math.cos(s.order * t)]), "K");
        p.line([[0.5, -1], [0.5, 1]], "grey", { width: 1, dash: true });
        return `at one half: ${Math.cos((s.order * Math.PI) / 3).toFixed(3)}`;
      },
    },
    {
      panels: 2,
      handles: () => ["first", "second"].map((name) => ({ kind: "truth", name: `${name} record`, at: (s) => moments(s[name]).slice(0, 2), to: (_, [x]) => Lesson.set(name, x), keys: (_, by) => Lesson.step(name, by) })),
      draw(s, [p, q], d) {
        const points = [moments(s.first), moments(s.second)], mean = [0, 1, 2].map((j) => (points[0][j] + points[1][j]) / 2);
        p.axes({ x: [-1.3, 1.3], y: [-1.2, 1.3], xlabel: "moment of T₁", ylabel: "moment of T₂" });
        p.poly(curve.map((v) => v.slice(0, 2)), "K", { label: "K for t = 3" });
        p.line(points.map((v) => v.slice(0, 2)), "truth", { width: 1 });
        p.named("truth", "two records", "round");
        p.dots([mean.slice(0, 2)], "Z", { r: 6, label: "their moments" });
        q.axes({ x: [-1.6, 1.6], y: [-1.5, 1.5], equal: true, xticks: [], yticks: [], title: "with T₃: K for t = 4" });
        const seen = q.solid(d.solid, 40, "K smooth", [curve, points]);
        q.dots([seen(mean)], "Z", { r: 6 });
        return `moments (${mean[0].toFixed(3)}, ${mean[1].toFixed(3)})`;
      },
    },
    {
      predict: {
        ask: "The grey bump is replaced by the nearest polynomial of degree below 8, by truncation. Drag the ring to the height of the polynomial at x = 0.2.",
        at: [0.2, 0.2], along: "y", base: (s, [p]) => query(s, p), truth: () => [0.2, Lesson.data.fits[place("bandwidth")][place("degree")][0].values[60]],
      },
      handles: () => [{ kind: "truth", name: "bandwidth h", at: (s) => [0.2 + s.bandwidth, Math.exp(-0.5)], to: (_, [x]) => Lesson.set("bandwidth", Math.abs(x - 0.2)), keys: (_, by) => Lesson.step("bandwidth", by) }, { track: "degree", kind: "K", name: "degrees t" }],
      draw(s, [p], d) {
        const fits = d.fits[place("bandwidth")][place("degree")];
        query(s, p);
        fits.forEach((fit, i) => p.line(grid(100).map((x, j) => [x, fit.values[j]]), ["K", "Z"][i], { dash: i > 0, label: ["truncation", "Jackson"][i] }));
        return `largest error of truncation: ${fits[0].error.toPrecision(3)}\nof Jackson's operator: ${fits[1].error.toPrecision(3)}`;
      },
    },
    {
      handles: () => [{ track: "moments", kind: "K", name: "degrees t" }],
      draw(s, [p], d) {
        const t = s.moments, at = least(t), low = sum(t, at);
        p.axes({ x: [-1, 1], y: [1.8 * low - 0.3, t], xlabel: "x", ylabel: "sum of the moments of x" });
        p.line(grid(600, 0, Math.PI).map((a) => [Math.cos(a), sum(t, a)]), "K");
        p.line([[-1, 0], [1, 0]], "grey", { width: 1 });
        p.dots([[Math.cos(at), low]], "Z", { r: 6, label: "least" });
        return `S = ${(t - low).toFixed(4)} (the library: ${d.library[place("moments")].toFixed(4)})\nWith the printed scale the loss is up to ${((t - low) / t).toFixed(4)} ε.`;
      },
    },
    {
      handles: () => [{ kind: "grey", name: "records n", at: (s) => [s.people ** 0.25, 1.5], to: (_, [x]) => Lesson.set("people", x ** 4), keys: (_, by) => Lesson.step("people", by) }],
      draw(s, [p], d) {
        const h = place("narrow"), near = d.near[h], rows = d.noise.map((noise) => noise[h].map((std, i) => near[i] + std / s.people));
        p.axes({ x: [1.8, 70], y: [1e-5, 3], logx: true, logy: true, xlabel: "degrees t", ylabel: "error of the answer at ε = 1", xticks: [2, 4, 8, 16, 32, 64].map((t) => [t, t]) });
        p.line([[s.people ** 0.25, 1e-6], [s.people ** 0.25, 9]], "grey", { width: 1, label: "t = n to the 1/4" });
        p.line(d.degrees.map((t, i) => [t, near[i]]), "truth", { dash: true, label: "approximation" });
        rows.forEach((row, j) => p.line(d.degrees.map((t, i) => [t, row[i]]), ["K", "Z"][j], { label: `${["same", "weighted"][j]} noise + approximation` }));
        return `least: ${Math.min(...rows[0]).toFixed(4)}, and ${Math.min(...rows[1]).toFixed(4)} with weighted noise`;
      },
    },
    {
      handles: () => [{ track: "epsilon", kind: "Z", name: "ε" }],
      draw(s, [p], d) {
        const { answers, std } = d.answers[place("epsilon")][place("window")], truth = d.true[place("window")];
        p.axes({ x: [-1, 1], y: [-0.2, 0.9], xlabel: "centre c of the kernel", ylabel: "answer" });
        p.band(d.centres, answers.map((a, i) => a - 2 * std[i]), answers.map((a, i) => a + 2 * std[i]), "Z", { label: "± 2 standard deviations" });
        p.line(d.centres.map((c, i) => [c, answers[i]]), "Z", { label: "private" });
        p.line(d.centres.map((c, i) => [c, truth[i]]), "truth", { dash: true, label: "true" });
        return `largest error ${Math.max(...answers.map((a, i) => Math.abs(a - truth[i]))).toFixed(3)}`;
      },
    },
    {
      handles: () => [{ kind: "K", name: "derivatives K", at: (s) => [s.smooth, s.smooth / (2 * s.variables + s.smooth)], to: (_, [x]) => Lesson.set("smooth", x), keys: (_, by) => Lesson.step("smooth", by) }, { track: "variables", kind: "grey", name: "variables d" }],
      draw(s, [p]) {
        const orders = grid(15, 1, 16), plain = (k) => k / (2 * s.variables + k), weighted = (k) => Math.min(1, k / (1.5 * s.variables));
        p.axes({ x: [0.5, 16.5], y: [-0.2, 1.25], xlabel: "derivatives K", ylabel: "exponent of 1/n" });
        p.line(orders.map((k) => [k, weighted(k)]), "Z", { dash: true, label: "weighted" });
        p.line(orders.map((k) => [k, plain(k)]), "K", { label: "K / (2d + K)" });
        return `d = ${s.variables}, K = ${s.smooth}: exponent ${plain(s.smooth).toFixed(3)}, weighted ${weighted(s.smooth).toFixed(3)}`;
      },
    },
  ]);
})();
