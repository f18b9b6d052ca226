-- A person's editor: opens files of the folder KIT_FOLDER with the server KIT_LSP (a JSON list of words), and prints what it sees as JSON.
local root, seen = os.getenv("KIT_FOLDER"), {}
local id = vim.lsp.start_client({
  name = "kit",
  cmd = vim.fn.json_decode(os.getenv("KIT_LSP")),
  root_dir = root,
  init_options = { show_places = "kit.showPlaces" },
})
vim.lsp.commands["kit.showPlaces"] = function(command)
  vim.fn.setqflist(vim.lsp.util.locations_to_items(command.arguments[3], "utf-16"))
end

local function open(path)
  vim.cmd("edit! " .. root .. "/" .. path)
  vim.lsp.buf_attach_client(0, id)
end
local function problems()
  return vim.tbl_map(function(each)
    return { each.lnum + 1, each.col, each.end_col, each.code or each.user_data.lsp.code }
  end, vim.diagnostic.get(0))
end
local function settles(isRight)
  return vim.wait(20000, function() return isRight(problems()) end, 20)
end
-- Puts the cursor on the first occurrence of a word, and asks.
local function ask(method, word, params)
  for row, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
    local from, to = line:find(word, 1, true)
    if from then vim.api.nvim_win_set_cursor(0, { row, to - 1 }) break end
  end
  local answers = vim.lsp.buf_request_sync(0, "textDocument/" .. method, params or vim.lsp.util.make_position_params(), 20000)
  return answers and answers[id] and answers[id].result
end


local isRight, fault = pcall(function()
  open(".kiro/steering/money.md")
  seen.warned = settles(function(found) return #found == 1 end)
  seen.problems = problems()
  vim.api.nvim_buf_set_lines(0, 2, 3, false, { 'fileMatchPattern: "src/**/*.ts"' })
  seen.mended = settles(function(found) return #found == 0 end)
  seen.modified = vim.bo.modified

  open("src/checkout.test.ts")
  vim.api.nvim_buf_set_lines(0, 0, 0, false, { "// 😀漢字 checkout#9.9" })
  seen.unknown = settles(function(found) return #found == 1 end)
  seen.columns = problems()
  seen.rules = ask("hover", "//").contents.value
  local places = ask("definition", "checkout#1.2")
  seen.definition = { vim.uri_to_fname(places[1].uri):sub(#root + 2), places[1].range.start.line + 1 }
  vim.api.nvim_buf_set_lines(0, 0, 1, false, { "// checkout#1." })
  seen.completion = vim.tbl_map(function(item) return item.label end, ask("completion", "// checkout#1.", vim.tbl_extend(
    "force", vim.lsp.util.make_position_params(), { position = { line = 0, character = 14 } })))

  vim.api.nvim_buf_set_lines(0, 0, 1, false, {})

  open(".kiro/specs/checkout/requirements.md")
  vim.lsp.codelens.refresh()
  vim.wait(20000, function()
    local lenses = vim.lsp.codelens.get(0)
    return #lenses > 1 and #vim.tbl_filter(function(lens) return not lens.command end, lenses) == 0
  end, 20)
  seen.lenses = vim.tbl_map(function(lens) return { lens.range.start.line + 1, lens.command.title } end, vim.lsp.codelens.get(0))
  vim.api.nvim_win_set_cursor(0, { 10, 0 })
  vim.lsp.codelens.run()
  vim.wait(20000, function() return #vim.fn.getqflist() > 0 end, 20)
  seen.listed = vim.tbl_map(function(item) return item.text end, vim.fn.getqflist())

  vim.lsp.stop_client(id)
  seen.stopped = vim.wait(20000, function() return vim.lsp.get_client_by_id(id) == nil end, 20)
end)
if not isRight then seen.fault = fault end
io.stdout:write(vim.fn.json_encode(seen))
vim.cmd("qall!")
