// Lesson 10: a shadow of the body, mechanisms before the data, intervals of a release.
(() => {
  const { plane, place } = Lesson, scale = (s) => (s.planned * s.loss) / 20190;
  const bars = (s, p, d, known) => {
    const n = d.errors.length, most = Math.max(...d.errors) / scale(s);
    p.axes({ x: [0, 1.3 * most], y: [-0.6, n - 0.2], xlabel: "root mean square error of a cell", yticks: [] });
    d.mechanisms.forEach((name, i) => {
      const error = d.errors[i] / scale(s);
      if (i < known) p.bars([[0, error, i - 0.42, i - 0.05]], i === n - 1 ? "KK" : "K");
      p.text([0.01 * most, i + 0.08], i < known ? `${name}: ${error.toPrecision(2)}` : name);
    });
  };

  Lesson.pictures([
    {
      draw(s, [p], d) {
        const { outline, truth, labels } = d.shadows[s.shown];
        p.axes({ x: [-0.1, 1.1], y: [-0.1, 1.1], equal: true, xlabel: labels[0], ylabel: labels[1] });
        p.poly(outline, "K", { label: "K" });
        p.dots([truth], "truth", { r: 6, label: "true answers" });
        return `true answers (${truth.map((x) => x.toFixed(3)).join(", ")})`;
      },
    },
    {
      predict: {
        ask: "The lowest bar is the error of the first mechanism. Drag the ring to where the bar of the last one, at the top, ends.",
        at: [0.0009, 0], along: "x", ratio: true, base: (s, [p], d) => bars(s, p, d, 1), truth: (s) => [Lesson.data.errors.at(-1) / scale(s), 0],
      },
      handles: (s, d) => [{ kind: "K", name: "records n", at: () => [d.errors[0] / scale(s), -0.23], to: (_, [x]) => Lesson.set("planned", (20190 * d.errors[0]) / (Math.max(1e-9, x) * s.loss)), keys: (_, by) => Lesson.step("planned", by) }],
      draw(s, [p], d) {
        bars(s, p, d, 99);
        return `from ${(d.errors[0] / scale(s)).toFixed(4)} down to ${(d.errors.at(-1) / scale(s)).toFixed(4)}`;
      },
    },
    {
      handles: (s, d) => {
        const { ranges } = d.releases[place("people")][place("spent")], levels = Lesson.controls.confidence.values;
        return [{ kind: "K", name: "confidence", at: () => [ranges[place("confidence")][1][0], 11], to: (_, [x]) => Lesson.set("confidence", levels.reduce((best, level, i) => (Math.abs(ranges[i][1][0] - x) < Math.abs(ranges[levels.indexOf(best)][1][0] - x) ? level : best))), keys: (_, by) => Lesson.step("confidence", by) }];
      },
      draw(s, [p], d) {
        const seen = d.releases[place("people")][place("spent")], [low, high] = seen.ranges[place("confidence")];
        p.axes({ x: [-0.35, 1.2], y: [-0.8, 11.9], xlabel: "share of records (the first 12 of 40 cells)", yticks: [] });
        d.labels.forEach((name, i) => {
          p.text([-0.33, 11.25 - i], name);
          p.bars([[low[i], high[i], 10.82 - i, 11.05 - i]], "K", { label: i ? "" : "interval" });
        });
        p.dots(seen.released.map((x, i) => [x, 10.93 - i]), "Z", { r: 4, label: "released" });
        p.dots(seen.truth.map((x, i) => [x, 10.93 - i]), "truth", { r: 2.5, label: "true" });
        return `${seen.held[place("confidence")]} of 40 intervals hold the truth.\nerror of this release: ${seen.error.toFixed(4)}\npredicted before the data: at most ${seen.predicted.toFixed(4)}`;
      },
    },
  ]);
})();
