DROP TABLE presence;
