-- One sentence that situates a chunk in its document, written by a language model: indexed with the chunk by both
-- retrievers (content_hash is the hash of both), and never shown as its text.
ALTER TABLE chunks ADD COLUMN context text NOT NULL DEFAULT '';
ALTER TABLE chunks ADD COLUMN context_by text; -- the model and the prompt that were asked; NULL: none was
