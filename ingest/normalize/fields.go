package normalize

func (a *agentJSON) normalize() (Record, error) {
	var c checker
	record := &Agent{
		OrganizationID: c.organization(a.OrganizationID),
		AgentID:        c.id("agent_id", a.AgentID),
		Name:           c.text("name", a.Name, 0, maxName),
		Slug:           c.optionalText("slug", a.Slug, 1, maxSlug),
		DeletedAt:      c.optionalInstant("deleted_at", a.DeletedAt),
		UpdatedAt:      c.instant("updated_at", a.UpdatedAt),
	}
	return checked(record, c)
}

func (r *runJSON) normalize() (Record, error) {
	var c checker
	kind := "agent"
	if r.Kind != nil {
		kind = c.oneOf("kind", r.Kind, runKinds)
	}
	record := &Run{
		OrganizationID:      c.organization(r.OrganizationID),
		RunID:               c.id("run_id", r.RunID),
		AgentID:             c.id("agent_id", r.AgentID),
		RunKind:             kind,
		ParentRunID:         c.optionalID("parent_run_id", r.ParentRunID),
		Status:              c.oneOf("status", r.Status, statuses),
		InitiatorIdentifier: c.initiator("initiator_identifier", r.InitiatorIdentifier),
		InitiatorName:       c.optionalText("initiator_name", r.InitiatorName, 0, maxName),
		InitiatorType:       c.optionalOneOf("initiator_type", r.InitiatorType, initiatorTypes),
		CreatedAt:           c.instant("created_at", r.CreatedAt),
		UpdatedAt:           c.instant("updated_at", r.UpdatedAt),
	}
	return checked(record, c)
}

func (a *attributionJSON) normalize() (Record, error) {
	var c checker
	record := &Attribution{
		OrganizationID:    c.organization(a.OrganizationID),
		AttributionID:     c.id("attribution_id", a.AttributionID),
		RunID:             c.id("run_id", a.RunID),
		AgentID:           c.id("agent_id", a.AgentID),
		UserIdentifier:    c.person("user_identifier", a.UserIdentifier),
		UserName:          c.optionalText("user_name", a.UserName, 0, maxName),
		ActivityType:      c.oneOf("activity_type", a.ActivityType, activityTypes),
		RunInitiationType: c.oneOf("run_initiation_type", a.RunInitiationType, initiations),
		Source:            c.text("source", a.Source, 1, maxSource),
		OccurredAt:        c.instant("occurred_at", a.OccurredAt),
	}
	return checked(record, c)
}

func checked(record Record, c checker) (Record, error) {
	if c.fault != nil {
		return nil, c.fault
	}
	return record, nil
}
