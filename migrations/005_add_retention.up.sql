-- Everything of the history up to here is let go, or is about to be: nobody starts to read before it.
ALTER TABLE namespaces ADD COLUMN pruned bigint NOT NULL DEFAULT 0;
