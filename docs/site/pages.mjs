// Collects what the site shows in one folder: the pages, a list of the pages of each folder, the diagrams as pictures, and the files to which pages link.
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

const found = (folder, recursive) =>
  readdirSync(join(root, folder), { recursive }).filter((name) => name.endsWith('.md')).sort().map((name) => posix.join(folder, name))
const pages = [...found('.', false), ...found('docs', true)]
const isPage = (path) => pages.includes(path)
pages.forEach(add)

/** A folder without a page of its own gets one, with a link to each page in it. */
for (const folder of new Set(pages.map(dirname))) {
  if (existsSync(join(site, folder, 'index.md'))) continue
  const links = pages.filter((page) => dirname(page) === folder).map((page) => {
    const title = readFileSync(join(root, page), 'utf8').match(/^# (.*)$/m)[1]
    return `- [${title}](${posix.basename(page)})`
  })
  const name = posix.basename(folder) === 'adr' ? 'Decisions' : posix.basename(folder)
  writeFileSync(join(site, folder, 'index.md'), `# ${name[0].toUpperCase()}${name.slice(1)}\n\n${links.join('\n')}\n`)
}
