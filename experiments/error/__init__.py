"""How large is the error? Mechanisms measured against predictions and bounds."""
