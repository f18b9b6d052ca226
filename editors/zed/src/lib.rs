//! Starts `kit lsp` for Zed: as the settings say, else the kit that the project has installed.

use zed_extension_api::{self as zed, settings::LspSettings, Command, LanguageServerId, Result, Worktree};

struct Kit;

impl zed::Extension for Kit {
    fn new() -> Self {
        Self
    }

    fn language_server_command(&mut self, id: &LanguageServerId, worktree: &Worktree) -> Result<Command> {
        let binary = LspSettings::for_worktree(id.as_ref(), worktree)?.binary;
        let (path, arguments) = match binary {
            Some(binary) => (binary.path, binary.arguments),
            None => (None, None),
        };
        let (command, default_arguments) = match path {
            Some(path) => (path, vec!["lsp".to_string()]),
            None => {
                let npx = worktree.which("npx").ok_or_else(|| {
                    "kit needs Node, whose npx is not in the path. Install Node, or set lsp.kit.binary.path to kit."
                        .to_string()
                })?;
                // Without `--no`, npx would load a package of this name that the project does not have.
                (npx, ["--no", "kit", "lsp"].map(str::to_string).to_vec())
            }
        };
        Ok(Command {
            command,
            args: arguments.unwrap_or(default_arguments),
            env: worktree.shell_env(),
        })
    }
}

zed::register_extension!(Kit);
