DROP VIEW IF EXISTS count_stored_runs SYNC
