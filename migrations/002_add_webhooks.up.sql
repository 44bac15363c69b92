-- Events that a webhook did not take, in spite of all tries. They are beside the position: it has passed them.
CREATE TABLE dead_letters (
    subscription uuid NOT NULL REFERENCES subscriptions (id) ON DELETE CASCADE,
    sequence     bigint NOT NULL,
    event        uuid NOT NULL,
    payload      text NOT NULL,         -- the event as it was posted: the history may have let it go by now
    attempts     integer NOT NULL,
    reason       text NOT NULL,         -- of the last try's failure
    status       integer NOT NULL,      -- of the last answer; 0 when there was none
    created      timestamptz NOT NULL,  -- when it was given up
    redrive      timestamptz,           -- when it was asked to be delivered again; null when it was not
    PRIMARY KEY (subscription, sequence)
);
CREATE INDEX dead_letters_redrive ON dead_letters (subscription, sequence) WHERE redrive IS NOT NULL;

-- The tries of what a webhook subscription is about to deliver and could not yet; there is a row only while there is trouble.
CREATE TABLE delivery_attempts (
    subscription uuid PRIMARY KEY REFERENCES subscriptions (id) ON DELETE CASCADE,
    sequence     bigint NOT NULL,       -- of the first event that is tried
    redriven     boolean NOT NULL,      -- it comes from the dead letters
    attempts     integer NOT NULL,
    reason       text NOT NULL,
    status       integer NOT NULL,
    next         timestamptz NOT NULL   -- when the next try is due
);

CREATE INDEX subscriptions_webhooks ON subscriptions (id) WHERE transport = 'webhooks';
