"""Statements of the papers as they are printed, where they are false: for study, not for use.

| printed | what fails | corrected |
|---|---|---|
| `PrintedNumericSparse`, `numeric_sparse_printed` | accuracy (DISC-11) | `NumericSparse` |
| `PRINTED_STOPPING`, `printed_iterative_accuracy` | accuracy (DISC-13) | `IterativeConstruction` |
| `printed_online_weights_accuracy` | accuracy (DISC-21) | `OnlineConstruction` |
| `printed_shortcut_step` | privacy (DISC-5) | `shortcut_step_epsilon` |
| `printed_smooth_scale` | privacy (DISC-15) | `UniformLaplace` |

The ids are those of the formula sheet. What fails in privacy is here as a number only. No mechanism
accepts it, so no release can rest on it. Both mechanisms that can be built with a printed variant
are as private as they claim: `PrintedNumericSparse`, and `IterativeConstruction` with
``design=PRINTED_STOPPING``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
