package schema

import "github.com/runlens/runlens/schema/sql"

// SecretPurgedPeople is the name in TableSecrets of the key of TablePurgedPeople: 32 hexadecimal digits. Of several
// rows, written at the same time, the one stored first counts.
const SecretPurgedPeople = "purged_people"

var purgedOfAll = sql.AllOrganizations("the list has hashes of people with their organizations")

// PurgedPeopleKey selects the key as stored; no row where there is none.
var PurgedPeopleKey = sql.Select{
	Columns: []string{"argMin(value, (created_at, value)) AS stored_key"}, From: purgedOfAll(TableSecrets),
	Where: []string{"name = '" + SecretPurgedPeople + "'"}, Having: "count() > 0",
}

// PurgedPeople selects the people whose records stay out: person, and until, the last event clock at which they do.
var PurgedPeople = sql.Select{
	Columns: []string{"person", "until"}, From: purgedOfAll(TablePurgedPeople).Final(true), Where: []string{"NOT lifted"},
}

// PurgedPerson is SQL of the hash by which TablePurgedPeople knows a person: SipHash-2-4 with 128 bits. organization
// and identifier are SQL of two texts. The key is read where the statement runs and does not stand in its text.
func PurgedPerson(organization, identifier string) string {
	key := sql.Select{
		Columns: []string{"(reinterpretAsUInt64(unhex(substring(stored_key, 1, 16)))," +
			" reinterpretAsUInt64(unhex(substring(stored_key, 17, 16))))"},
		From: sql.Query(PurgedPeopleKey),
	}
	return "sipHash128ReferenceKeyed(" + sql.In(key) + ", concat(" + organization + ", '\\0', " + identifier + "))"
}
