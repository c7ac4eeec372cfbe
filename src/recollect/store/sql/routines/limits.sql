-- Takes as many tokens as are wanted from each of several buckets, or as many as all of them have; none from any where one
-- is empty. Buckets are locked in the order given: a credential's before its tenant's, which many have in common.
CREATE OR REPLACE FUNCTION take_tokens(
    p_tenant int, p_buckets text[], p_seconds float8[], p_sizes int[], p_wanted int)
RETURNS TABLE (granted int, remaining int[], wait float8[])
LANGUAGE plpgsql AS $$
DECLARE
    dues float8[] := '{}';
    due float8;
    moment float8;
    had int[] := '{}';
BEGIN
    FOR i IN 1 .. cardinality(p_buckets) LOOP
        SELECT r.due INTO due FROM rate_limits r WHERE r.tenant_id = p_tenant AND r.bucket = p_buckets[i] FOR UPDATE;
        IF NOT FOUND THEN
            INSERT INTO rate_limits AS r (tenant_id, bucket, due) VALUES (p_tenant, p_buckets[i], 0)
                ON CONFLICT (tenant_id, bucket) DO UPDATE SET due = r.due RETURNING r.due INTO due;
        END IF;
        dues := dues || due;
    END LOOP;
    moment := extract(epoch FROM clock_timestamp());
    granted := p_wanted;
    FOR i IN 1 .. cardinality(p_buckets) LOOP
        -- A clock that was set back must not shut anybody out for as long as it was ahead.
        dues[i] := least(greatest(dues[i], moment), moment + p_seconds[i] * p_sizes[i]);
        had := had || floor((moment - dues[i]) / p_seconds[i] + p_sizes[i] + 1e-6)::int;
        granted := least(granted, had[i]);
    END LOOP;
    wait := '{}';
    remaining := '{}';
    FOR i IN 1 .. cardinality(p_buckets) LOOP
        IF granted > 0 THEN
            dues[i] := dues[i] + granted * p_seconds[i];
            UPDATE rate_limits r SET due = dues[i] WHERE r.tenant_id = p_tenant AND r.bucket = p_buckets[i];
        END IF;
        remaining := remaining || (had[i] - granted);
        -- Until the next token where there is none, and until the bucket is full otherwise.
        wait := wait || CASE WHEN had[i] < 1 THEN dues[i] - moment - (p_sizes[i] - 1) * p_seconds[i]
                             ELSE dues[i] - moment END;
    END LOOP;
    RETURN NEXT;
END
$$;
