-- Lists that documents were given because of the configured default: when that changes, they are given others.

ALTER TABLE access_lists ADD COLUMN by_default boolean NOT NULL DEFAULT false;
