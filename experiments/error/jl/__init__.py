"""Problems, mechanisms and noise of the figures on the JL mechanism."""
