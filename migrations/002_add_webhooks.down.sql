DROP INDEX subscriptions_webhooks;
DROP TABLE delivery_attempts, dead_letters;
DELETE FROM subscriptions WHERE transport = 'webhooks';
