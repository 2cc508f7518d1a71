DROP VIEW IF EXISTS count_settlement_marks SYNC
