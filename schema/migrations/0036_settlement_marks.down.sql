DROP TABLE IF EXISTS settlement_marks SYNC
