DROP VIEW IF EXISTS count_stored_attributions SYNC
