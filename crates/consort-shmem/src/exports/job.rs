//! The job, its teams and their contexts.

use libc::{c_char, c_int, c_long, c_void};

use super::routine;
use crate::{
    contexts::{self, Context},
    info, setup,
    teams::{self, Config, Team},
};

routine!(("init") () => setup::init());
routine!(("init_thread") (requested: c_int, provided: *mut c_int) -> c_int =>
    setup::init_thread(requested, provided));
routine!(("query_initialized") (initialized: *mut c_int) =>
    setup::query_initialized(initialized));
routine!(("query_thread") (provided: *mut c_int) => setup::query_thread(provided));
routine!(("finalize") () => setup::finalize());
routine!(("global_exit") (status: c_int) -> ! => setup::global_exit(status));
routine!(("my_pe") () -> c_int => setup::my_pe());
routine!(("n_pes") () -> c_int => setup::n_pes());
routine!(("info_get_version") (major: *mut c_int, minor: *mut c_int) =>
    info::get_version(major, minor));
routine!(("info_get_name") (name: *mut c_char) => info::get_name(name));
// Only profilers use its variable arguments.
routine!(("pcontrol") (_level: c_int) => ());

routine!(("team_my_pe") (team: Team) -> c_int => teams::my_pe(team));
routine!(("team_n_pes") (team: Team) -> c_int => teams::n_pes(team));
routine!(("team_translate_pe") (src_team: Team, src_pe: c_int, dest_team: Team) -> c_int =>
    teams::translate_pe(src_team, src_pe, dest_team));
routine!(("team_get_config") (team: Team, mask: c_long, config: *mut Config) -> c_int =>
    teams::get_config(team, mask, config));
routine!(("team_split_strided")
    (parent: Team, start: c_int, stride: c_int, size: c_int, config: *const Config, mask: c_long,
     new_team: *mut Team) -> c_int =>
    teams::split_strided(parent, start, stride, size, config, mask, new_team));
routine!(("team_split_2d")
    (parent: Team, xrange: c_int, x_config: *const Config, x_mask: c_long, x_team: *mut Team,
     y_config: *const Config, y_mask: c_long, y_team: *mut Team) -> c_int =>
    teams::split_2d(parent, xrange, x_config, x_mask, x_team, y_config, y_mask, y_team));
routine!(("team_destroy") (team: Team) => teams::destroy(team));

routine!(("team_create_ctx") (team: Team, options: c_long, ctx: *mut Context) -> c_int =>
    contexts::team_create_ctx(team, options, ctx));
routine!(("ctx_create") (options: c_long, ctx: *mut Context) -> c_int =>
    contexts::create(options, ctx));
routine!(("ctx_destroy") (ctx: Context) => contexts::destroy(ctx));
routine!(("ctx_get_team") (ctx: Context, team: *mut Team) -> c_int =>
    contexts::get_team(ctx, team));
routine!(("ctx_session_start")
    (ctx: Context, options: c_long, config: *const c_void, mask: c_long) =>
    contexts::session_start(ctx, options, config, mask));
routine!(("ctx_session_stop") (ctx: Context) => contexts::session_stop(ctx));

/// `start_pes`, the only routine of the specification without the prefix `shmem_`.
#[unsafe(no_mangle)]
extern "C" fn start_pes(pes: libc::c_int) {
    setup::start_pes(pes);
}

/// As `shmem_my_pe`, under its name in version 1.0.
#[unsafe(no_mangle)]
extern "C" fn _my_pe() -> c_int {
    setup::my_pe()
}

/// As `shmem_n_pes`.
#[unsafe(no_mangle)]
extern "C" fn _num_pes() -> c_int {
    setup::n_pes()
}
