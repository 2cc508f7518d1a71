DROP TABLE IF EXISTS settled_attributions SYNC
