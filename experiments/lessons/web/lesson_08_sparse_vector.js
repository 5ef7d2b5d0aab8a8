// Lesson 8: a stream against a threshold, two printed theorems, a hypothesis that learns.
(() => {
  const { plane, place } = Lesson;
  const losses = (p, d) => {
    p.axes({ x: [0.9, 1300], y: [0, 3], logx: true, xlabel: "queries below before the one above", ylabel: "privacy loss / ε" });
    p.bars([[0.9, 1300, 1, 3]], "red", { label: "more than ε" });
    p.line(d.lengths.map((k, i) => [k, d.worst[4][i]]), "K", { label: "4/ε, as in the paper" });
  };

  Lesson.pictures([
    {
      handles: () => [{ kind: "truth", name: "last query", at: (s) => [30, s.height], to: (s, [, y]) => Lesson.set("height", y), keys: (s, by) => Lesson.set("height", s.height + 5 * by) },
        { track: "draw", kind: "grey", name: "draw of the noise" }],
      draw(s, [p], d) {
        const truth = [...d.counts, s.height], [rho, ...nu] = d.noise[s.draw], line = (rho * d.scales[0]) / s.stream_loss;
        const seen = truth.map((f, i) => f + (nu[i] * d.scales[1]) / s.stream_loss), found = seen.findIndex((f) => f >= line), halt = found < 0 ? 29 : found;
        p.axes({ x: [0, 31], y: [-190, 220], xlabel: "query", ylabel: "count" });
        p.line([[0, 0], [40, 0]], "truth", { width: 1, label: "threshold" });
        p.line([[0, line], [40, line]], "Z", { dash: true, label: "noisy threshold" });
        truth.forEach((f, i) => { if (i <= halt) p.line([[i + 1, f], [i + 1, seen[i]]], "grey", { width: 1 }); });
        p.dots(truth.map((f, i) => [i + 1, f]), "truth", { r: 2, label: "true" });
        p.dots(seen.slice(0, halt + 1).map((f, i) => [i + 1, f]), "Z", { r: 4, label: "noisy" });
        if (found >= 0) p.dots([[found + 1, seen[found]]], "red", { r: 9, empty: true, label: "above" });
        return `This run ${found < 0 ? "finds nothing above" : `halts at query ${found + 1}`}.\nTheorem 3.24, k = 30, β = 0.05: α = ${((8 * (Math.log(30) + Math.log(40))) / s.stream_loss).toFixed(3)}`;
      },
    },
    {
      predict: {
        ask: "The noise of the queries is halved, to 2/ε. Drag the ring to the privacy loss after 1000 queries below.",
        at: [1000, 0.4], along: "y", base: (s, [p], d) => losses(p, d), truth: (s) => [1000, Lesson.data.worst[place("query_scale")][7]],
      },
      handles: (s, d) => [{ kind: "truth", name: "noise of the queries", at: () => [1000, d.worst[place("query_scale")][7]], to: (_, [, y]) => Lesson.set("query_scale", 2 / Math.max(0.2, y - 0.5)), keys: (_, by) => Lesson.step("query_scale", by) }],
      draw(s, [p], d) {
        const loss = d.worst[place("query_scale")];
        losses(p, d);
        p.line(d.lengths.map((k, i) => [k, loss[i]]), "truth", { dash: true, label: `${s.query_scale}/ε` });
        return `After 1000 queries: ${loss[7].toFixed(3)} ε with noise ${s.query_scale}/ε, and ${d.worst[4][7].toFixed(3)} ε with 4/ε.`;
      },
    },
    {
      handles: (s, d) => [{ kind: "Z", name: "c = k", at: () => [s.cutoff, d.failures[0][place("cutoff")]], to: (_, [x]) => Lesson.set("cutoff", x), keys: (_, by) => Lesson.step("cutoff", by) }],
      draw(s, [p], d) {
        const at = place("cutoff");
        p.axes({ x: [0.9, 120], y: [1e-6, 3], logx: true, logy: true, xlabel: "c = k", ylabel: "probability of a value off by more than α" });
        ["printed", "corrected"].forEach((label, j) => p.curve(d.cutoffs.map((c, i) => [c, d.failures[j][i]]), ["Z", "K"][j], { label }));
        p.line([[0.5, 0.05], [200, 0.05]], "truth", { dash: true, label: "β = 0.05" });
        return `printed: α = ${d.accuracies[0][at].toFixed(3)}, missed with probability ${d.failures[0][at].toFixed(3)}\ncorrected: α = ${d.accuracies[1][at].toFixed(3)}, missed with probability ${d.failures[1][at].toPrecision(3)}`;
      },
    },
    {
      panels: 2,
      handles: (s, d) => [{ panel: 1, kind: "Z", name: "updates", at: () => [s.updates, d.gaps[s.updates]], to: (_, [x]) => Lesson.set("updates", x), keys: (_, by) => Lesson.step("updates", by) }],
      draw(s, [p, q], d) {
        p.axes({ x: [-0.5, 31.5], y: [0, 0.16], xlabel: "element", ylabel: "share" });
        p.bars(d.shares.map((y, i) => [i - 0.5, i + 0.5, 0, y]), "grey", { label: "data" });
        p.line(d.guesses[s.updates].flatMap((y, i) => [[i - 0.5, y], [i + 0.5, y]]), "Z", { label: "hypothesis" });
        q.axes({ x: [0, d.gaps.length], y: [0, 0.4], xlabel: "updates", ylabel: "largest error of a query" });
        q.line(d.gaps.map((y, i) => [i, y]), "K");
        q.line([[0, 0.1], [99, 0.1]], "truth", { dash: true, label: "α = 0.1" });
        return `${d.gaps.length - 1} updates were needed; the theorem allows ${Math.floor(d.allowed)} (4 ln 32 / 0.1²).`;
      },
    },
    {
      handles: (s) => {
        const most = [0.25, 0.125][s.constants];
        return [{ kind: "truth", name: "true gap", at: () => [s.gap, 2], to: (_, [x]) => Lesson.set("gap", x), keys: (_, by) => Lesson.set("gap", s.gap + 0.01 * by) },
          { kind: "Z", name: "noise", at: () => [s.gap + s.noise * most, 1], to: (_, [x]) => Lesson.set("noise", (x - s.gap) / most), keys: (_, by) => Lesson.set("noise", s.noise + 0.05 * by) }];
      },
      draw(s, [p]) {
        const [noise, loss] = [[0.25, 0.5], [0.125, 0.125]][s.constants], seen = Math.abs(s.gap + s.noise * noise), most = s.gap + loss, wrong = most > 1 + 1e-9;
        p.axes({ x: [-0.1, 2.1], y: [-0.6, 3.1], xlabel: "in units of α", yticks: [] });
        p.bars([[1, 3, -2, 5]], "red", { label: "more than α" });
        p.bars([[0, s.gap, 1.75, 2.25]], "grey");
        p.bars([[0, seen, 0.75, 1.25]], "K");
        p.bars([[0, most, -0.25, 0.25]], wrong ? "Z" : "KK");
        p.line([[0.75, -2], [0.75, 5]], "truth", { dash: true, label: "stop below 3α/4" });
        ["largest gap, at most", "seen gap of Q", "true gap of Q"].forEach((name, i) => p.text([0.02, i + 0.35], name));
        if (seen >= 0.75) return "The run goes on: the hypothesis is updated.";
        return wrong ? `The run stops, and some query may err by ${most.toFixed(3)} α.` : `The run stops, and no query errs by more than ${most.toFixed(3)} α.`;
      },
    },
    {
      handles: () => [{ track: "queries", kind: "grey", name: "queries in the class" }],
      draw(s, [p], d) {
        const [pure, other] = d.promised[place("queries")], points = (row) => row.map((y, i) => [d.sizes[i], y]).filter(([, y]) => y !== null);
        p.axes({ x: [8e5, 1.3e10], y: [1e-3, 2], logx: true, logy: true, xlabel: "records n", ylabel: "α, with probability 0.95" });
        p.curve(points(pure), "K", { label: "1-DP" });
        p.curve(points(other), "Z", { label: "(1, 10⁻⁶)-DP" });
        return `at the last point ${pure[8].toFixed(4)} and ${other[8].toFixed(4)}`;
      },
    },
  ]);
})();
