package query

// A Code says why a query is not answered: with status 400 (spec section 7), RestrictedKey with 403.
type Code string

const (
	InvalidQuery  Code = "invalid_query"
	UnknownMember Code = "unknown_member"
	RangeTooLarge Code = "range_too_large"
	InvalidCursor Code = "invalid_cursor"
	RestrictedKey Code = "restricted_key" // a valid query that the caller's key does not permit
)

// An Error says why a request was refused.
type Error struct {
	Code Code
	// Param names the place in the request, such as filters[1].value, or for UnknownMember the
	// member itself (contract 4.5). Empty where no place can be named.
	Param string
	// Reason explains the refusal in a log. It never reaches the caller.
	Reason string
}

func (e *Error) Error() string {
	return string(e.Code) + " at " + e.Param + ": " + e.Reason
}

func invalid(param, reason string) error {
	return &Error{Code: InvalidQuery, Param: param, Reason: reason}
}
