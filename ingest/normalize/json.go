package normalize

import (
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The records as their JSON has them. A field that is absent or null is nil.
type (
	agentJSON struct {
		Record         string  `json:"record"`
		OrganizationID *string `json:"organization_id"`
		AgentID        *string `json:"agent_id"`
		Name           *string `json:"name"`
		Slug           *string `json:"slug"`
		DeletedAt      *string `json:"deleted_at"`
		UpdatedAt      *string `json:"updated_at"`
	}
	runJSON struct {
		Record              string  `json:"record"`
		OrganizationID      *string `json:"organization_id"`
		RunID               *string `json:"run_id"`
		AgentID             *string `json:"agent_id"`
		Kind                *string `json:"kind"`
		ParentRunID         *string `json:"parent_run_id"`
		Status              *string `json:"status"`
		InitiatorIdentifier *string `json:"initiator_identifier"`
		InitiatorName       *string `json:"initiator_name"`
		InitiatorType       *string `json:"initiator_type"`
		CreatedAt           *string `json:"created_at"`
		UpdatedAt           *string `json:"updated_at"`
	}
	attributionJSON struct {
		Record            string  `json:"record"`
		OrganizationID    *string `json:"organization_id"`
		AttributionID     *string `json:"attribution_id"`
		RunID             *string `json:"run_id"`
		AgentID           *string `json:"agent_id"`
		UserIdentifier    *string `json:"user_identifier"`
		UserName          *string `json:"user_name"`
		ActivityType      *string `json:"activity_type"`
		RunInitiationType *string `json:"run_initiation_type"`
		Source            *string `json:"source"`
		OccurredAt        *string `json:"occurred_at"`
	}
)

var strict = json.RejectUnknownMembers(true)

// JSON reads one record written as a JSON object: unknown and repeated fields, wrong types, data
// behind the object and invalid UTF-8 are errors. The error is an *Error.
func JSON(line []byte) (Record, error) {
	var head struct {
		Record *string `json:"record"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return nil, jsonError(err)
	}
	if head.Record == nil {
		return nil, &Error{"record", "is required: agent, run or attribution"}
	}
	switch Kind(*head.Record) {
	case KindAgent:
		var a agentJSON
		if err := json.Unmarshal(line, &a, strict); err != nil {
			return nil, jsonError(err)
		}
		return a.normalize()
	case KindRun:
		var r runJSON
		if err := json.Unmarshal(line, &r, strict); err != nil {
			return nil, jsonError(err)
		}
		return r.normalize()
	case KindAttribution:
		var a attributionJSON
		if err := json.Unmarshal(line, &a, strict); err != nil {
			return nil, jsonError(err)
		}
		return a.normalize()
	default:
		return nil, &Error{"record", "must be agent, run or attribution"}
	}
}

// jsonError names the field and puts the library's reason in words without Go types.
func jsonError(err error) error {
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		field := semantic.JSONPointer.LastToken()
		if errors.Is(err, json.ErrUnknownName) {
			return &Error{field, "is no field of this record"}
		}
		if field == "" {
			return &Error{"", "must be a JSON object"}
		}
		return &Error{field, "must be a string or, where the field allows it, null"}
	}
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return &Error{syntactic.JSONPointer.LastToken(), "is given twice"}
		}
		return &Error{"", "is not valid JSON: " + strings.TrimPrefix(syntactic.Err.Error(), "jsontext: ")}
	}
	return &Error{"", "is not valid JSON"}
}
