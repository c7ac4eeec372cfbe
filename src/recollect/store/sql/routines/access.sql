-- Whether grants include somebody who has these tokens. 'departments' is the token of those who read what any department may:
-- no grant is written that way.
CREATE OR REPLACE FUNCTION granted(p_grants text[], p_tokens text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT p_grants && p_tokens OR ('departments' = ANY (p_tokens) AND EXISTS (
        SELECT FROM unnest(p_grants) AS g (token) WHERE starts_with(g.token, 'department:')))
$$;
