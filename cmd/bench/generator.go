package main

import "fmt"

// A generator writes the SQL expressions of the records of a class. A record is a function of its organization's number
// o and its own position i, both given as SQL, so that any part of the data can be made anywhere, again, and in any
// order. Every draw is a hash of o, i and a word.
type generator struct {
	class
	world
}

// The kinds of run rows.
type version int

const (
	// stored first: the final version of most runs, an early one of those with several versions
	firstVersion version = iota
	middleVersion
	lastVersion
)

const (
	// hasVersions holds for 5 % of the runs, hasMiddle for a quarter of those, isRepeated for 2 % of all rows.
	versionsEvery = 20
	middleEvery   = 4 * versionsEvery
	repeatEvery   = 50
)

// draw is a random UInt64.
func (g generator) draw(word, o, i string) string {
	return fmt.Sprintf("cityHash64('%s', '%s', %s, %s)", g.name, word, o, i)
}

// share is a random number from 0 (inclusive) to 1.
func (g generator) share(word, o, i string) string {
	return g.draw(word, o, i) + " / 18446744073709551616."
}

// oneIn holds for one record in n, drawn by the word.
func (g generator) oneIn(n int, word, o, i string) string {
	return fmt.Sprintf("%s %% %d = 0", g.draw(word, o, i), n)
}

func (g generator) organizationSQL(o string) string {
	return fmt.Sprintf("concat('%s-', toString(%s))", g.name, o)
}

func (g generator) id(word, o, i string) string {
	return fmt.Sprintf("reinterpretAsUUID(sipHash128('%s', '%s', %s, %s))", g.name, word, o, i)
}

// Agents have the same ids in all organizations, which nothing may mix up.
func agentID(agent string) string {
	return fmt.Sprintf("reinterpretAsUUID(sipHash128('agent', toUInt32(%s)))", agent)
}

// The few first agents and people have most of the rows: the k-th of n gets a share that falls with a power of k.
func (g generator) agentOf(o, i string) string {
	return agentID(fmt.Sprintf("%d * pow(%s, 3)", agentsPerOrganization, g.share("agent", o, i)))
}

func (g generator) personOf(word, o, i string) string {
	return fmt.Sprintf("toUInt32(%d * pow(%s, 3))", people, g.share(word, o, i))
}

// One person in ten is known by a phone number.
func identifierOf(person string) string {
	return fmt.Sprintf(
		"if(%[1]s %% 10 = 7, concat('+4670', leftPad(toString(%[1]s), 7, '0')), concat('person', toString(%[1]s), '@', "+
			"['acme.example', 'mail.example', 'partner.example'][%[1]s %% 3 + 1]))",
		person,
	)
}

// People appear under several names.
func (g generator) nameOf(person, word, o, i string) string {
	return fmt.Sprintf(
		"multiIf(%[2]s %% 10 = 0, NULL, %[2]s %% 10 = 1, concat('P. ', toString(%[1]s)), concat('Person ', toString(%[1]s)))",
		person, g.draw(word, o, i))
}

// createdMillis grows with i, as in an export that is ordered by time.
func (g generator) createdMillis(o, i string) string {
	step := max(1, uint64(g.spanMillis())/g.size)
	return fmt.Sprintf("toInt64(%d + intDiv(toUInt64(%s) * %d, %d) + %s %% %d)", g.startMillis(), i, g.spanMillis(),
		g.size, g.draw("created", o, i), step)
}

func instant(millis string) string {
	return "fromUnixTimestamp64Milli(" + millis + ", 'UTC')"
}

// initiation is how a run began: 0 unknown, 1 by an automated initiator, 2 by a person.
func (g generator) initiation(o, i string) string {
	d := g.draw("initiation", o, i)
	return fmt.Sprintf("multiIf(%[1]s %% 100 < 8, 0, %[1]s %% 100 < 20, 1, 2)", d)
}

func (g generator) finalStatus(o, i string) string {
	d := g.draw("status", o, i)
	return fmt.Sprintf(
		"multiIf(%[1]s %% 1000 < 780, 'COMPLETED', %[1]s %% 1000 < 880, 'FAILED', %[1]s %% 1000 < 930, 'CANCELLED', "+
			"['PENDING', 'RUNNING', 'WAITING_FOR_SLOT', 'CANCELLING', 'AWAITING_REPLY', 'SLEEPING', 'PAUSING', "+
			"'PAUSED'][intDiv(%[1]s, 1000) %% 8 + 1])",
		d,
	)
}

// run is the i-th run, in one of its versions: the SQL of each record field.
func (g generator) run(v version, o, i string) map[string]string {
	created := g.createdMillis(o, i)
	initiation, person := g.initiation(o, i), g.personOf("person", o, i)
	kind := g.draw("kind", o, i)
	severalVersions := g.oneIn(versionsEvery, "versions", o, i)
	late := fmt.Sprintf("%s %% %d", g.draw("updated", o, i), 3*24*3600*1000)
	fields := map[string]string{
		"organization_id": g.organizationSQL(o),
		"run_id":          g.id("run", o, i),
		"created_at":      instant(created),
		"agent_id":        g.agentOf(o, i),
		"kind": fmt.Sprintf(
			"if(%[1]s %% 100 < 92, 'agent', ['sub_agent', 'browser', 'phone', 'inbound_phone', 'platform'][%[1]s %% 5 + 1])",
			kind),
		"parent_run_id": fmt.Sprintf("if(%s %% 100 < 92, NULL, %s)", kind, g.id("run", o, "toUInt64("+i+" - 1)")),
		"initiator_identifier": fmt.Sprintf(
			"multiIf(%[1]s = 0, NULL, %[1]s = 1, concat('schedule-', toString(%[2]s %% 20)), %[3]s)", initiation, person,
			identifierOf(person)),
		"initiator_name": fmt.Sprintf("if(%s = 2, %s, NULL)", initiation, g.nameOf(person, "name", o, i)),
		"initiator_type": fmt.Sprintf(
			"multiIf(%[1]s = 0, NULL, %[1]s = 1, 'automated', ['internal', 'internal', 'external', 'unknown'][%[2]s %% 4 + 1])",
			initiation, person),
	}
	switch v {
	case firstVersion:
		fields["status"] = fmt.Sprintf("if(%s, 'RUNNING', %s)", severalVersions, g.finalStatus(o, i))
		fields["updated_at"] = instant(fmt.Sprintf("%s + 1000 + if(%s, 0, %s %% 600000)", created, severalVersions, late))
	case middleVersion:
		fields["status"] = "'AWAITING_REPLY'"
		fields["updated_at"] = instant(created + " + 30000")
	case lastVersion:
		fields["status"] = g.finalStatus(o, i)
		fields["updated_at"] = instant(fmt.Sprintf("%s + 60000 + %s", created, late))
	}
	return fields
}

// attribution is the i-th attribution record. Four records in a row share three runs, and three in
// four name the run's initiation, so that pairs repeat; some runs are in no table.
func (g generator) attribution(o, i string) map[string]string {
	run := fmt.Sprintf("toUInt64(4 * intDiv(%s, 4) + %s %% 3)", i, g.draw("run of", o, i))
	person := fmt.Sprintf("if(%s, %s, %s)", g.oneIn(4, "other", o, i), g.personOf("other person", o, i),
		g.personOf("person", o, run))
	return map[string]string{
		"organization_id": g.organizationSQL(o),
		"attribution_id":  g.id("attribution", o, i),
		"run_id": fmt.Sprintf("if(%s, %s, %s)", g.oneIn(100, "missing", o, i), g.id("missing run", o, i),
			g.id("run", o, run)),
		"agent_id":        g.agentOf(o, run),
		"user_identifier": identifierOf(person),
		"user_name":       g.nameOf(person, "user name", o, i),
		"activity_type": fmt.Sprintf("['initiated', 'initiated', 'associated', 'interacted', 'interacted'][%s %% 5 + 1]",
			g.draw("activity", o, i)),
		// Of the run, as known when the record was written.
		"run_initiation_type": fmt.Sprintf("['unknown', 'automated', 'human'][%s + 1]", g.initiation(o, run)),
		"source": fmt.Sprintf("['web', 'chat', 'email', 'api', 'phone', 'mobile'][toUInt8(6 * pow(%s, 2)) + 1]",
			g.share("source", o, i)),
		"occurred_at": instant(fmt.Sprintf("%s + %s %% 7200000", g.createdMillis(o, run), g.draw("occurred", o, i))),
	}
}
