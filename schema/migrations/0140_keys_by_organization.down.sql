ALTER TABLE api_keys DROP INDEX IF EXISTS by_organization
