ALTER TABLE namespaces DROP COLUMN pruned;
