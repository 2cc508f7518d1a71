DROP TABLE IF EXISTS purged_people
