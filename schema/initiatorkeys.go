package schema

import (
	"fmt"
	"slices"

	"github.com/runlens/runlens/schema/sql"
)

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
)

// InitiatorKeys selects the different initiator keys of the rows of runs that satisfy conditions, with their texts:
// organization_id, initiator_key, initiator_identifier and initiator_name.
func InitiatorKeys(read sql.Reader, conditions ...string) sql.Select {
	const identifier = "tupleElement(record, 'initiator_identifier')"
	return sql.Select{
		With:     []string{initiator + " AS initiator", initiatorName + " AS initiator_name"},
		Distinct: true,
		Columns: []string{"organization_id", InitiatorKeySQL + " AS initiator_key",
			"assumeNotNull(" + identifier + ") AS initiator_identifier", "initiator_name"},
		From:  read(TableRuns),
		Where: append(slices.Clone(conditions), "isNotNull("+identifier+")"),
	}
}

// SharedKeys selects the shared keys, organization_id and initiator (the identifier's part), of which texts has a text;
// texts selects organization_id, initiator_key, initiator_identifier and initiator_name. Its texts are compared with
// one another and with those of the table initiator_keys.
func SharedKeys(read sql.Reader, texts sql.From) sql.Select {
	ofKey := fmt.Sprintf("bitShiftRight(initiator_key, %d)", InitiatorKeyShift)
	columns := []string{"organization_id", "initiator_key", "initiator_identifier", "initiator_name"}
	keys := sql.Select{Columns: []string{"organization_id", ofKey}, From: texts}
	return sql.Select{
		Columns: []string{"organization_id", ofKey + " AS initiator"},
		From: sql.Query(sql.Union{
			{
				Columns: columns, From: read(TableInitiatorKeys),
				Where: []string{"(organization_id, " + ofKey + ") IN" + sql.In(keys)},
			},
			// The WITH of a part of a union would apply to those after it.
			{Columns: columns, From: texts},
		}),
		Group: []string{"organization_id", "initiator"},
		// A name that is null is a text of its own, which no uniqExact counts, not even as a tuple's element.
		Having: "min(initiator_identifier) != max(initiator_identifier)" +
			" OR uniqExact(initiator_name) + max(isNull(initiator_name)) > uniqExact(initiator_key)",
	}
}

// AnySharedKey selects rows where a key of the organization is shared, and else none. texts are those of the delta, if
// there is one.
func AnySharedKey(texts ...sql.From) sql.Union {
	one := []string{"1"}
	rows := sql.Union{{Columns: one, From: sql.Table(TableSharedKeys)}}
	for _, from := range texts {
		rows = append(rows, sql.Select{Columns: one, From: sql.Query(SharedKeys(sql.Table, from))})
	}
	return rows
}
