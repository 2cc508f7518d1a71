package schema

// An Access is what a caller may read: an organization's rows, all of them or those that a restriction lets through.
// The organization and the restriction are one value, made from a key or by WholeOrganization and in no other way, so
// that nobody can pass on the one without the other. The zero Access is of no organization: it reads nothing.
type Access struct {
	organization OrganizationID
	restriction  *Restriction
}

// Access is what the key may read. Whether it may at all is for its scopes to say.
func (k *APIKey) Access() Access { return Access{k.OrganizationID, k.Restriction} }

// WholeOrganization is the access to all rows of an organization. It is for operators: who uses it is listed in
// TestWhoReadsWholeOrganizations.
func WholeOrganization(organization OrganizationID) Access { return Access{organization: organization} }

// Organization is the organization whose rows they are: for logs, limits and places, and to narrow a query.
func (a Access) Organization() OrganizationID { return a.organization }

// Restriction is which of them may be read; nil for all.
func (a Access) Restriction() *Restriction { return a.restriction }
