ALTER TABLE operations RESET (fillfactor);
