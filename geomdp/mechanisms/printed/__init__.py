"""Statements of the papers that are false or not proved, as printed: for study, not for use.

These statements are about accuracy. Their printed proofs fail:

* `PrintedNumericSparse` and `numeric_sparse_printed` (DISC-11, corrected in `NumericSparse`),
* `PRINTED_STOPPING` and `printed_iterative_accuracy` (DISC-13, corrected in
  `IterativeConstruction`),
* `printed_online_weights_accuracy` (DISC-21, corrected in `OnlineConstruction`).

`PrintedNumericSparse` and `IterativeConstruction` with ``design=PRINTED_STOPPING`` are mechanisms.
Both are as private as they claim.

These statements fail in privacy: `printed_shortcut_step` (DISC-5, corrected in
`shortcut_step_epsilon`) and `printed_smooth_scale` (DISC-15, corrected in `UniformLaplace`). These
functions only return numbers, from which no mechanism of the library computes its noise.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
