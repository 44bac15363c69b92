-- Which process serves which subscription, and how far: for those who ask another process. It is nothing that would be missed after a crash.
CREATE UNLOGGED TABLE presence (
    subscription uuid NOT NULL,
    process      uuid NOT NULL,
    consumers    integer NOT NULL,
    in_flight    integer NOT NULL,
    last_error   text NOT NULL,
    expires      timestamptz NOT NULL,
    PRIMARY KEY (subscription, process)
);
