package schema

// SecretPurgedPeople is the name in TableSecrets of the key of TablePurgedPeople: 32 hexadecimal digits. Of several
// rows, written at the same time, the one stored first counts.
const SecretPurgedPeople = "purged_people"

// PurgedPeopleKey is SQL of the key as stored; without rows where there is none.
const PurgedPeopleKey = "SELECT argMin(value, (created_at, value)) AS stored_key FROM " + TableSecrets +
	" WHERE name = '" + SecretPurgedPeople + "' HAVING count() > 0"

// PurgedPeople is SQL of the people whose records stay out: person, and until, the last event clock at which they do.
const PurgedPeople = "SELECT person, until FROM " + TablePurgedPeople + " FINAL WHERE NOT lifted"

// PurgedPerson is SQL of the hash by which TablePurgedPeople knows a person: SipHash-2-4 with 128 bits. organization
// and identifier are SQL of two texts. The key is read where the statement runs and does not stand in its text.
func PurgedPerson(organization, identifier string) string {
	return "sipHash128ReferenceKeyed((SELECT (reinterpretAsUInt64(unhex(substring(stored_key, 1, 16)))," +
		" reinterpretAsUInt64(unhex(substring(stored_key, 17, 16)))) FROM (" + PurgedPeopleKey + "))," +
		" concat(" + organization + ", '\\0', " + identifier + "))"
}
