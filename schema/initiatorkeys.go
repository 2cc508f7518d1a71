package schema

import "fmt"

// An initiator key represents the identifier and the name of who started a run, so that one number is grouped instead
// of two texts. It is made of hashes, so that two texts may share one: two names of one person share 48 bits, two
// identifiers 80. The table initiator_keys has every text, and shared_initiator_keys the identifiers' part of the keys
// of which it has more texts than keys. Where a key is shared, or the delta makes it so, answers come from the base
// tables (decisions/identity-by-hash.md).

const (
	// InitiatorKeyShift is the lowest bit of the identifier's part of an initiator key.
	InitiatorKeyShift = 48

	// InitiatorKeySQL is the value of initiator_key over the columns initiator and initiator_name: 80 bits of the number
	// of the identifier and 48 bits of the name. 0 means no identifier.
	InitiatorKeySQL = "if(initiator = 0, toUInt128(0), bitOr(bitShiftLeft(initiator, 48), " +
		"toUInt128(if(isNull(initiator_name), 0, bitShiftRight(cityHash64(ifNull(initiator_name, '')), 16)))))"

	// InitiatorOfSQL is the identifier's part of an initiator key for the identifier given as ?.
	InitiatorOfSQL = "bitShiftRight(reinterpretAsUInt128(sipHash128(?)), 48)"

	initiator = "bitShiftRight(tupleElement(record, 'initiator'), 48)"
	// Without an identifier there is no person to name.
	initiatorName = "if(isNull(tupleElement(record, 'initiator_identifier')), NULL, tupleElement(record, " +
		"'initiator_name'))"

	// initiatorTexts are the columns with the texts of a key.
	initiatorTexts = "organization_id, initiator_key, initiator_identifier, initiator_name"
)

// InitiatorKeys is SQL that selects the different initiator keys of the rows of runs that satisfy a condition, with
// their texts: organization_id, initiator_key, initiator_identifier and initiator_name.
func InitiatorKeys(condition string) string {
	return "WITH " + initiator + " AS initiator, " + initiatorName + " AS initiator_name" +
		" SELECT DISTINCT organization_id, " + InitiatorKeySQL + " AS initiator_key," +
		" assumeNotNull(tupleElement(record, 'initiator_identifier')) AS initiator_identifier, initiator_name" +
		" FROM " + TableRuns + " WHERE " + condition + " AND isNotNull(tupleElement(record, 'initiator_identifier'))"
}

// SharedKeys is SQL that selects the shared keys, organization_id and initiator (the identifier's part), of which
// texts has a text; texts is SQL that selects organization_id, initiator_key, initiator_identifier and initiator_name.
// Its texts are compared with one another and with those of the table initiator_keys that satisfy the condition known.
func SharedKeys(texts, known string) string {
	ofKey := fmt.Sprintf("bitShiftRight(initiator_key, %d)", InitiatorKeyShift)
	return "SELECT organization_id, " + ofKey + " AS initiator" +
		"\nFROM\n(" +
		"\n    SELECT " + initiatorTexts + " FROM " + TableInitiatorKeys +
		"\n    WHERE " + known + " AND (organization_id, " + ofKey + ") IN (SELECT organization_id, " + ofKey + " FROM (" +
		texts + "))" +
		// The WITH of a part of a union would apply to those after it.
		"\n    UNION ALL" +
		"\n    SELECT " + initiatorTexts + " FROM (" + texts + ")" +
		"\n)" +
		"\nGROUP BY organization_id, initiator" +
		// A name that is null is a text of its own.
		"\nHAVING min(initiator_identifier) != max(initiator_identifier)" +
		" OR uniqExact(tuple(initiator_name)) > uniqExact(initiator_key)"
}

// AnySharedKey is SQL that selects rows where a key of the organization is shared, and else none. texts are those of
// the delta; empty for none.
func AnySharedKey(texts string) string {
	sql := "SELECT 1 FROM " + TableSharedKeys + " WHERE " + OfOrganization
	if texts != "" {
		sql += "\nUNION ALL\nSELECT 1 FROM\n(\n" + SharedKeys(texts, OfOrganization) + "\n)"
	}
	return sql
}
