-- When answers from a collection are refused: the calibrated rule with its parameters and how it was found.
-- NULL: not calibrated, the built-in rule holds.

ALTER TABLE collections ADD COLUMN refusal jsonb CHECK (jsonb_typeof(refusal) = 'object');
