package output

// The fixed parts of an Excel file.
const (
	xmlHead           = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	mainNamespace     = `http://schemas.openxmlformats.org/spreadsheetml/2006/main`
	relationNamespace = `http://schemas.openxmlformats.org/officeDocument/2006/relationships`
	packageRelations  = `http://schemas.openxmlformats.org/package/2006/relationships`
	contentType       = `application/vnd.openxmlformats-officedocument.spreadsheetml`
)

// Indexes of cellXfs in stylesPart.
const (
	styleHead = 1 // bold
	styleText = 2 // number format 49, "@": also what is typed into the cell later is text
	styleDate = 3 // yyyy-mm-dd
)

const (
	stylesPart = `<styleSheet xmlns="` + mainNamespace + `">` +
		`<numFmts count="1"><numFmt numFmtId="164" formatCode="yyyy\-mm\-dd"/></numFmts>` +
		`<fonts count="2"><font><sz val="11"/><name val="Calibri"/></font>` +
		`<font><b/><sz val="11"/><name val="Calibri"/></font></fonts>` +
		`<fills count="2"><fill><patternFill patternType="none"/></fill>` +
		`<fill><patternFill patternType="gray125"/></fill></fills>` +
		`<borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="4"><xf/>` +
		`<xf fontId="1" applyFont="1"/><xf numFmtId="49" applyNumberFormat="1"/>` +
		`<xf numFmtId="164" applyNumberFormat="1"/></cellXfs></styleSheet>`
	workbookPart = `<workbook xmlns="` + mainNamespace + `" xmlns:r="` + relationNamespace +
		`"><sheets>%s</sheets></workbook>`
	workbookRelations = `<Relationships xmlns="` + packageRelations + `">%s<Relationship Id="styles" Type="` +
		relationNamespace + `/styles" Target="styles.xml"/></Relationships>`
	rootRelations = `<Relationships xmlns="` + packageRelations + `"><Relationship Id="rId1" Type="` + relationNamespace +
		`/officeDocument" Target="xl/workbook.xml"/></Relationships>`
	contentTypes = `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">` +
		`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
		`<Default Extension="xml" ContentType="application/xml"/>` +
		`<Override PartName="/xl/workbook.xml" ContentType="` + contentType + `.sheet.main+xml"/>` +
		`<Override PartName="/xl/styles.xml" ContentType="` + contentType + `.styles+xml"/>%s</Types>`
)
