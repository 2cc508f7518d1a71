package schema

import "github.com/runlens/runlens/schema/sql"

// SecretPurgedPeople is the name in TableSecrets of the keys of TablePurgedPeople: 32 hexadecimal digits. A store has
// one of its own, of several rows, written at the same time, the one stored first; and those of stores from which
// organizations were moved here. An entry may be under any of them, new ones are under the first.
const SecretPurgedPeople = "purged_people"

var purgedOfAll = sql.AllOrganizations("the list has hashes of people with their organizations")

// PurgedPeopleKeys selects the keys as stored, the first one first; an empty array where there are none.
var PurgedPeopleKeys = sql.Select{
	Columns: []string{"arrayMap(k -> k.2, arraySort(groupUniqArray((created_at, value)))) AS stored_keys"},
	From:    purgedOfAll(TableSecrets), Where: []string{"name = '" + SecretPurgedPeople + "'"},
}

// PurgedPeople selects the people whose records stay out: person, and until, the last event clock at which they do.
var PurgedPeople = sql.Select{
	Columns: []string{"person", "until"}, From: purgedOfAll(TablePurgedPeople).Final(true), Where: []string{"NOT lifted"},
}

// PurgedPerson is SQL of the hashes by which TablePurgedPeople may know a person, an array: SipHash-2-4 with 128 bits,
// under each of the keys. organization and identifier are SQL of two texts. The keys are read where the statement runs
// and do not stand in its text.
func PurgedPerson(organization, identifier string) string {
	keys := sql.Select{
		Columns: []string{"arrayMap(k -> (reinterpretAsUInt64(unhex(substring(k, 1, 16)))," +
			" reinterpretAsUInt64(unhex(substring(k, 17, 16)))), stored_keys)"},
		From: sql.Query(PurgedPeopleKeys),
	}
	return "arrayMap(k -> sipHash128ReferenceKeyed(k, concat(" + organization + ", '\\0', " + identifier + "))," +
		sql.In(keys) + ")"
}
