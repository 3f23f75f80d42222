//! `millstream-lab lab`: runs of measurement plans, stored, compared and reported. One file a job.

pub mod adc;
mod card;
mod compare;
mod guest;
mod import;
mod kernels;
mod list;
mod load;
mod place;
mod planned;
mod recipe;
mod report;
mod resume;
mod run;
mod sets;
mod worker;

use millstream_cli::group;

group! {
    typed;
    /// Carries out measurement plans; stores, compares and reports the results.
    LabVerb:
    Run(run), Resume(resume), List(list), Compare(compare), Report(report), Recipe(recipe),
    Import(import), Kernels(kernels), Load(load), Guest(guest), Card(card),
    #[command(hide = true)]
    Adc(adc),
    #[command(hide = true)]
    Worker(worker),
}
