-- Keys of a widget on pages of other sites. Whoever opens such a page has the key, so it opens the widget alone: one
-- collection, on these sites' pages, read as somebody in particular and never as the owner.
ALTER TABLE api_keys
    ADD COLUMN collection text   CHECK (collection <> ''),
    ADD COLUMN origins    text[] CHECK (origins <> '{}'),
    ADD CONSTRAINT api_keys_widget_check CHECK (
        (collection IS NULL) = (origins IS NULL) AND (origins IS NULL OR (scopes = '{read}' AND principal IS NOT NULL)));
ALTER TABLE api_keys
    ALTER COLUMN collection SET STATISTICS 0,
    ALTER COLUMN origins SET STATISTICS 0;
