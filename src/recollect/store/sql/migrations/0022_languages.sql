-- Documents are analysed in their own languages where their collection's is 'auto'. Collections of before keep theirs.
ALTER TABLE document_versions
    -- What the terms of the version are in: the document's language, then those of parts in others. NULL: the
    -- collection's. Terms are counted anew by this, whatever the language would be found to be today.
    ADD COLUMN analysed_as text[] CHECK (analysed_as <> '{}');
ALTER TABLE document_versions
    ALTER COLUMN analysed_as SET STATISTICS 0;
ALTER TABLE collection_state
    -- Every language that terms of it are in, or were: a search reads this row, and analyses its question in each.
    ADD COLUMN languages text[] NOT NULL DEFAULT '{}';
ALTER TABLE collection_state
    ALTER COLUMN languages SET STATISTICS 0;
ALTER TABLE collections
    ALTER COLUMN language SET DEFAULT 'auto';
