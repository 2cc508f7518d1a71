DROP TABLE IF EXISTS conflicting_records SYNC
