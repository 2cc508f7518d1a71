DROP TABLE IF EXISTS shared_initiator_keys SYNC
