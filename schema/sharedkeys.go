package schema

import "fmt"

// An initiator key is made of hashes, so that two texts may share one: two names of one person share 48 bits, two
// identifiers 80. The table initiator_keys holds every text, and shared_initiator_keys the identifiers' part of the keys of
// which it holds more texts than keys. Where a key is shared, or what was stored since makes it so, answers come from
// the base tables (decisions/identity-by-hash.md).

// initiatorTexts are the columns that say what a key stands for.
const initiatorTexts = "organization_id, initiator_key, initiator_identifier, initiator_name"

// SharedKeys is SQL that selects the shared keys, organization_id and initiator (the identifier's part), of which
// texts has a text; texts is SQL that selects organization_id, initiator_key, initiator_identifier and initiator_name. Its
// texts are compared with one another and with those of the table initiator_keys.
func SharedKeys(texts string) string {
	ofKey := fmt.Sprintf("bitShiftRight(initiator_key, %d)", InitiatorKeyShift)
	return "SELECT organization_id, " + ofKey + " AS initiator" +
		"\nFROM\n(" +
		"\n    SELECT " + initiatorTexts + " FROM " + TableInitiatorKeys +
		"\n    WHERE (organization_id, " + ofKey + ") IN (SELECT organization_id, " + ofKey + " FROM (" + texts + "))" +
		// The WITH of a part of a union would hold for those behind it.
		"\n    UNION ALL" +
		"\n    SELECT " + initiatorTexts + " FROM (" + texts + ")" +
		"\n)" +
		"\nGROUP BY organization_id, initiator" +
		// A name that is null is a text of its own.
		"\nHAVING min(initiator_identifier) != max(initiator_identifier)" +
		" OR uniqExact(tuple(initiator_name)) > uniqExact(initiator_key)"
}

// AnySharedKey is SQL that selects rows where a key of the organization is shared, and else none: ofOrganization is
// the organization's predicate, texts are those of what is not in the rollup yet, empty for none.
func AnySharedKey(ofOrganization, texts string) string {
	sql := "SELECT 1 FROM " + TableSharedKeys + " WHERE " + ofOrganization
	if texts != "" {
		sql += "\nUNION ALL\nSELECT 1 FROM\n(\n" + SharedKeys(texts) + "\n)"
	}
	return sql
}
