// Collects what the site shows in one folder: the pages, the list of decisions, the diagrams as pictures, and the files to which pages link.
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { renderMermaidSVG } from 'beautiful-mermaid'

const [root, site] = process.argv.slice(2)
const colours = { light: { fg: '#27272a', bg: '#ffffff' }, dark: { fg: '#e4e4e7', bg: '#1b1b1f' } }

/** GitHub shows README.md for a folder; a server of files shows index.html. */
const staged = (path) => path.replace(/README\.md$/, 'index.md')

/** Replaces each Mermaid diagram by a picture for light and one for dark pages, so that a reader needs no program. */
function draw(path, text) {
  return text.replaceAll(/^```mermaid\n([^]*?)^```$/gm, (_, diagram, at) => {
    const heading = [...text.slice(0, at).matchAll(/^#+ (.*)$/gm)].at(-1)[1]
    const pictures = Object.entries(colours).map(([mode, colour]) => {
      // The picture would ask another host for a font.
      const picture = renderMermaidSVG(diagram, { ...colour, transparent: true }).replace(/^\s*@import url\(.*\);$/m, '')
      const name = `${createHash('sha256').update(diagram).digest('hex').slice(0, 8)}-${mode}.svg`
      writeFileSync(join(site, dirname(path), name), picture)
      return `![Diagram: ${heading}](${name}){.${mode}-only}`
    })
    return pictures.join('\n')
  })
}

const isPicture = (path) => /\.(png|svg|gif)$/.test(path)

/** Copies a file to which a page links or that it shows. A browser shows the copy, because its name ends as that of a text or a picture. */
function copy(path) {
  const places = isPicture(path) ? [path, `public/files/${path}`] : [`public/files/${path}.txt`]
  for (const to of places.map((place) => join(site, place))) {
    mkdirSync(dirname(to), { recursive: true })
    copyFileSync(join(root, path), to)
  }
}

function add(path) {
  const text = readFileSync(join(root, path), 'utf8')
  mkdirSync(join(site, dirname(path)), { recursive: true })
  writeFileSync(join(site, staged(path)), draw(path, text))
  for (const [, link] of text.matchAll(/\]\(([^)#\s]+)/g)) {
    const target = posix.join(dirname(path), link)
    const linked = join(root, target)
    if (/^\w+:/.test(link) || !existsSync(linked) || statSync(linked).isDirectory() || isPage(target)) continue
    copy(target)
  }
}

const inFolder = (folder) => readdirSync(join(root, folder)).filter((name) => name.endsWith('.md')).sort().map((name) => posix.join(folder, name))
const pages = [...inFolder('.'), ...inFolder('docs'), ...inFolder('docs/adr')]
const isPage = (path) => pages.includes(path)
pages.forEach(add)
const decisions = inFolder('docs/adr').map((path) => {
  const title = readFileSync(join(root, path), 'utf8').match(/^# (.*)$/m)[1]
  return `- [${title}](${posix.basename(path)})`
})
writeFileSync(join(site, 'docs/adr/index.md'), `# Decisions\n\nEach page says what was decided, why, and what else was considered.\n\n${decisions.join('\n')}\n`)
