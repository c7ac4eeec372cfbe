-- A question may also end with passages in place of an answer.
ALTER TABLE access_log
    DROP CONSTRAINT access_log_outcome_check,
    ADD CONSTRAINT access_log_outcome_check CHECK (outcome IN ('nothing', 'low', 'passages', 'refused'));
