-- A write with an idempotency key whose process was killed between its effect and its reply is not made a second time:
-- what it stores notes that here, in the same transaction.
ALTER TABLE idempotent_requests ADD COLUMN took_effect_at timestamptz; -- NULL: nothing is stored that a repetition would double
